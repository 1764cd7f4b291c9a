// What each stage does: say which one it is, after which others, and remember it for the next.
const fs = require('fs');
module.exports = (stage) => {
  const before = process.env.STATE_stages || '';
  const told = `${stage} of ${process.env.INPUT_LABEL}${before && ` after ${before}`}`;
  console.log(`counter: ${told}`);
  fs.appendFileSync(process.env.GITHUB_STATE, `stages=${before && `${before},`}${stage}\n`);
  fs.appendFileSync(process.env.GITHUB_OUTPUT, `stage=${told}\n`);
};
