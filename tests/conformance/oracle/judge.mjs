// Answers one JSON line for every JSON line it reads: {expr, contexts, functions} or {path, text} -> GitHub's verdict.
import { createInterface } from "node:readline";
import { data, Evaluator, Lexer, Parser } from "@actions/expressions";
import { convertWorkflowTemplate, NoOperationTraceWriter, parseWorkflow } from "@actions/workflow-parser";

const KINDS = ["String", "Array", "Object", "Boolean", "Number", "Object", "Null"];

function evaluate({ expr, contexts, functions }) {
  let stage = "lexing";
  try {
    const { tokens } = new Lexer(expr).lex();
    stage = "parsing";
    const known = Object.entries(functions ?? {}).map(([name, value]) => ({
      name,
      minArgs: 0,
      maxArgs: 255,
      call: () => new data.BooleanData(value),
    }));
    const tree = new Parser(tokens, Object.keys(contexts), known).parse();
    stage = "evaluation";
    const values = JSON.parse(JSON.stringify(contexts), data.reviver);
    const result = new Evaluator(tree, values, new Map(known.map((f) => [f.name.toLowerCase(), f]))).evaluate();
    return { kind: KINDS[result.kind], value: plain(result) };
  } catch (error) {
    return { stage, message: String(error.message) };
  }
}

function plain(value) {
  switch (value.kind) {
    case data.Kind.Array:
      return [...value.values()].map(plain);
    case data.Kind.Dictionary:
      return Object.fromEntries(value.pairs().map(({ key, value: item }) => [key, plain(item)]));
    case data.Kind.Null:
      return null;
    case data.Kind.Number:
      return Number.isFinite(value.value) && !Object.is(value.value, -0) ? value.value : String(value.number());
    default:
      return value.value;
  }
}

async function template({ path, text }) {
  const parsed = parseWorkflow({ name: path, content: text }, new NoOperationTraceWriter());
  if (parsed.value === undefined) {
    return { errors: parsed.context.errors.getErrors().map((error) => error.message) };
  }
  const found = await convertWorkflowTemplate(parsed.context, parsed.value);
  return found.errors ? { errors: found.errors.map((error) => error.Message) } : { template: found };
}


for await (const line of createInterface({ input: process.stdin })) {
  const asked = JSON.parse(line);
  const answer = "expr" in asked ? evaluate(asked) : await template(asked);
  process.stdout.write(JSON.stringify(answer) + "\n");
}
