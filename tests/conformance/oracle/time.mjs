// First line: {path: text, ...} as JSON. For every further line: parse them all once, answer the seconds it took.
// With the argument `legs` also make the legs of every job with a matrix, and answer their names too.
import { createInterface } from "node:readline";
import { convertWorkflowTemplate, NoOperationTraceWriter, parseWorkflow } from "@actions/workflow-parser";
import { legsOf } from "./legs.mjs";

const trace = new NoOperationTraceWriter();
const expands = process.argv[2] === "legs";
let files;
for await (const line of createInterface({ input: process.stdin })) {
  if (files === undefined) {
    files = Object.entries(JSON.parse(line));
    continue;
  }
  const legs = [];
  const started = process.hrtime.bigint();
  for (const [name, content] of files) {
    const parsed = parseWorkflow({ name, content }, trace);
    if (parsed.value === undefined) continue;
    const template = await convertWorkflowTemplate(parsed.context, parsed.value);
    if (expands) for (const job of template.jobs) legs.push(...(job.strategy ? legsOf(job) : []));
  }
  const seconds = Number(process.hrtime.bigint() - started) / 1e9;
  process.stdout.write(`${JSON.stringify({ seconds, names: legs.map(({ name }) => name) })}\n`);
}
