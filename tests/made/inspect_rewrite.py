"""Other containers of one Inspect log: inspect_rewrite.py IN.eval OUTDIR   (run with the venv of inspect_ai: its zipfile knows zstd)

Writes deflate.eval (method 8, as logs before the end of 2025), stored.eval (method 0), no_header.eval (members that a crash leaves out:
header.json, summaries.json, reductions.json), duplicate.eval (an entry written twice, the last with score edits; the last wins).
These four are rewritten by Python's zipfile; the contents are Inspect's own.
"""
import os
import sys
import zipfile

import inspect_ai.log  # noqa: F401 (brings zstd to zipfile)
try:
    import zipfile_zstd  # noqa: F401
except ImportError:
    pass

src, out = sys.argv[1:]
with zipfile.ZipFile(src) as z:
    members = [(n, z.read(n)) for n in z.namelist()]


def write(name, method, keep=lambda n: True, extra=()):
    with zipfile.ZipFile(os.path.join(out, name), "w", method) as z:
        for n, b in members:
            if keep(n):
                z.writestr(n, b)
        for n, b in extra:
            z.writestr(n, b)


write("deflate.eval", zipfile.ZIP_DEFLATED)
write("stored.eval", zipfile.ZIP_STORED)
write("no_header.eval", zipfile.ZIP_DEFLATED, lambda n: n not in ("header.json", "summaries.json", "reductions.json"))
first = next((n, b) for n, b in members if n.startswith("samples/"))
write("duplicate.eval", zipfile.ZIP_DEFLATED, extra=[(first[0], first[1].replace(b"The answer is 3.", b"The answer is 4."))])
