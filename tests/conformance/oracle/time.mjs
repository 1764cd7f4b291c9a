// First line: {path: text, ...} as JSON. For every further line: parse them all once, answer the seconds it took.
import { createInterface } from "node:readline";
import { convertWorkflowTemplate, NoOperationTraceWriter, parseWorkflow } from "@actions/workflow-parser";

const trace = new NoOperationTraceWriter();
let files;
for await (const line of createInterface({ input: process.stdin })) {
  if (files === undefined) {
    files = Object.entries(JSON.parse(line));
    continue;
  }
  const started = process.hrtime.bigint();
  for (const [name, content] of files) {
    const parsed = parseWorkflow({ name, content }, trace);
    if (parsed.value !== undefined) await convertWorkflowTemplate(parsed.context, parsed.value);
  }
  process.stdout.write(`${Number(process.hrtime.bigint() - started) / 1e9}\n`);
}
