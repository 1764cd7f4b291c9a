// Says whether the job's token is still worth something: in the log, and in a file, as not every runner keeps the log
// of a post part.
const { execFileSync } = require("node:child_process");
const { writeFileSync } = require("node:fs");

const { GITHUB_SERVER_URL, GITHUB_REPOSITORY, INPUT_SIGN, INPUT_TOKEN, STATE_kept } = process.env;
const remote = `${GITHUB_SERVER_URL}/${GITHUB_REPOSITORY}`.replace("//", `//x-access-token:${INPUT_TOKEN}@`);
const branches = execFileSync("git", ["ls-remote", "--heads", remote]).toString().trim().split("\n");
const said = `the post part ran, with state ${STATE_kept} and ${branches.length} branch`;
console.log(said);
writeFileSync(INPUT_SIGN, said);
