// Reads {files: {path: text}, rounds} as JSON; answers the seconds that GitHub's parser took for all files, by round.
import { text } from "node:stream/consumers";
import { convertWorkflowTemplate, NoOperationTraceWriter, parseWorkflow } from "@actions/workflow-parser";

const { files, rounds } = JSON.parse(await text(process.stdin));
const trace = new NoOperationTraceWriter();
const seconds = [];
for (let round = 0; round < rounds; round++) {
  const started = process.hrtime.bigint();
  for (const [name, content] of Object.entries(files)) {
    const parsed = parseWorkflow({ name, content }, trace);
    if (parsed.value !== undefined) await convertWorkflowTemplate(parsed.context, parsed.value);
  }
  seconds.push(Number(process.hrtime.bigint() - started) / 1e9);
}
process.stdout.write(JSON.stringify(seconds));
