// Lets Node 20 import the JSON files that GitHub's packages import without saying that they are JSON.
import { register } from "node:module";

const loader = `
export function load(url, context, next) {
  const json = url.endsWith(".json");
  return next(url, json ? { ...context, importAttributes: { ...context.importAttributes, type: "json" } } : context);
}`;
register(`data:text/javascript,${encodeURIComponent(loader)}`);
