// Read arrays over HTTP with zarrita. The argument is JSON, a list of pairs: "v3" or "v2", and a URL.
// Prints a line of JSON for each, with the checksum of the elements as big-endian bytes.
import { createHash } from "node:crypto";
import { FetchStore, get, open } from "zarrita";

for (const [version, url] of JSON.parse(process.argv[1])) {
    const array = await open[version](new FetchStore(url), { kind: "array" });
    const { data, shape } = await get(array);
    const bytes = new Uint8Array(data.buffer, data.byteOffset, data.byteLength);
    for (let i = 0; i < bytes.length; i += data.BYTES_PER_ELEMENT) {
        bytes.subarray(i, i + data.BYTES_PER_ELEMENT).reverse();
    }
    const sha256 = createHash("sha256").update(bytes).digest("hex");
    console.log(JSON.stringify({ url, shape, dtype: array.dtype, sha256 }));
}
