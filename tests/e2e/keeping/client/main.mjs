// GitHub's own client restores what the built-in action saved, and saves for it.
import { readFileSync, writeFileSync } from "node:fs";
import * as cache from "cache-6";

const paths = ["kept"];
const found = await cache.restoreCache(paths, process.env.INPUT_RESTORE, []);
if (found !== process.env.INPUT_RESTORE || readFileSync("kept/file", "utf8") !== "from the built-in\n") {
  throw new Error(`not restored: ${found}`);
}
writeFileSync("kept/file", "from the client\n");
await cache.saveCache(paths, process.env.INPUT_SAVE);
process.exit(0);
