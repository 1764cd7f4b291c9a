// The legs of a job with GitHub's own expression engine. Its packages do not expand a matrix: the cross product is ours.
import { data, Evaluator, Lexer, Parser } from "@actions/expressions";

const CONTEXTS = ["github", "inputs", "vars", "needs", "strategy", "matrix"];
const EMPTY = new data.Dictionary();

/** [{matrix, name, runsOn}] of a job of a converted template whose matrix has vectors only. */
export function legsOf(job) {
  const vectors = vectorsOf(job);
  const name = evaluator(job.name);
  const runsOn = evaluator(job["runs-on"]);
  const found = product(vectors);
  return found.map((leg, index) => {
    const known = dictionary([
      ...["github", "inputs", "vars", "needs"].map((context) => [context, EMPTY]),
      ["strategy", strategy(index, found.length)],
      ["matrix", dictionary(leg)],
    ]);
    return { matrix: leg, name: name(known), runsOn: runsOn(known) };
  });
}

function vectorsOf(job) {
  const strategy = [...job.strategy].find(({ key }) => key.toString() === "matrix");
  return [...strategy.value].map(({ key, value }) => [key.toString(), [...value].map(valueOf)]);
}

function valueOf(token) {
  return typeof token.value === "number" ? new data.NumberData(token.value) : new data.StringData(token.toString());
}

function product(vectors) {
  let legs = [[]];
  for (const [key, values] of vectors) {
    legs = legs.flatMap((leg) => values.map((value) => [...leg, [key, value]]));
  }
  return legs;
}

function strategy(index, total) {
  return dictionary([
    ["fail-fast", new data.BooleanData(true)],
    ["job-index", new data.NumberData(index)],
    ["job-total", new data.NumberData(total)],
    ["max-parallel", new data.NumberData(total)],
  ]);
}

function dictionary(pairs) {
  return new data.Dictionary(...pairs.map(([key, value]) => ({ key, value })));
}

// A text with expressions is one format(...) to GitHub. It is read once for all legs: the best this engine can do.
function evaluator(token) {
  if (!token.isExpression) {
    const text = token.toString();
    return () => text;
  }
  const { tokens } = new Lexer(token.expression).lex();
  const tree = new Parser(tokens, CONTEXTS, []).parse();
  return (known) => new Evaluator(tree, known).evaluate().coerceString();
}
