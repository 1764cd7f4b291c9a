// How do the tests call a client that is written for node? One process a client: a call a line in, a result a line out.
//
// node drive.mjs <package> <file descriptor of the results>; a call is {method, args, env, cwd}.

import dns from "node:dns";
import { writeSync } from "node:fs";
import { createInterface } from "node:readline";

// RFC 6761, section 6.3: names below localhost are this machine. Not every resolver knows.
const lookup = dns.lookup;
dns.lookup = (host, options, done) =>
  lookup(String(host).endsWith(".localhost") ? "127.0.0.1" : host, options, done);

const [, , name, descriptor] = process.argv;
const module = await import(name);
const exported = (key) => module[key] ?? module.default?.[key];

function target() {
  if (exported("DefaultArtifactClient")) return new (exported("DefaultArtifactClient"))();
  if (exported("create")) return exported("create")();
  return exported("saveCache") === module.saveCache ? module : module.default;
}

function prepare({ env = {}, cwd }) {
  for (const [key, value] of Object.entries(env)) {
    if (value === null) delete process.env[key];
    else process.env[key] = value;
  }
  if (cwd) process.chdir(cwd);
}

async function answer(line) {
  const call = JSON.parse(line);
  try {
    prepare(call);
    return { result: (await target()[call.method](...call.args)) ?? null };
  } catch (error) {
    return { error: error.message, kind: error.name };
  }
}

for await (const line of createInterface({ input: process.stdin })) {
  const said = Buffer.from(JSON.stringify(await answer(line)) + "\n");
  for (let sent = 0; sent < said.length; ) sent += writeSync(Number(descriptor), said, sent);
}
process.exit(0);
