"""Makes station.h5, the file that the recipes of hdf5.sql read: `/usr/bin/python3 sql/hdf5_build.py`.

A weather station's week as instruments write it: hourly readings in chunks, a table of events, a small image, words
with vectors, links. All numbers come from formulas, so that a run anywhere gives the same values.

SPDX-License-Identifier: MIT
"""
import pathlib

import h5py
import numpy as np

HOURS = 7 * 24
START = 1764547200  # 2025-12-01T00:00:00Z
WORDS = ["rain", "snow", "storm", "sunshine", "drought"]
VECTORS = [[0.8, 0.1, 0.6, 0.0], [0.7, 0.0, 0.9, 0.1], [0.9, 0.9, 0.5, 0.0], [0.0, 0.1, 0.2, 1.0], [0.0, 0.3, 0.0, 0.9]]


def readings(f):
    hour = np.arange(HOURS)
    day = 4 - 3 * np.cos(2 * np.pi * (hour % 24 - 3) / 24) + hour // 24 * 0.5
    group = f.create_group("readings")
    group["time"] = START + 3600 * hour
    temperature = group.create_dataset("temperature", data=np.round(day, 1).astype("f4"), chunks=(48,),
                                       maxshape=(None,), shuffle=True, compression="gzip")
    temperature.attrs["units"] = "degC"
    temperature.attrs["valid_range"] = np.array([-60, 60], "i2")
    rain = np.where(hour % 31 < 4, (hour % 7) * 0.4, 0.0)
    rain[100] = np.nan  # the gauge was emptied
    group.create_dataset("rain", data=rain, chunks=(48,), compression="gzip").attrs["units"] = "mm"


def events(f):
    kinds = h5py.enum_dtype({"NOTE": 0, "WARNING": 1, "FAULT": 2}, basetype="u1")
    row = np.dtype([("hour", "i4"), ("kind", kinds), ("text", h5py.string_dtype()), ("sensors", "i2", (2,))])
    f["events"] = np.array([(3, 0, "gauge cleaned", (4, 0)), (27, 1, "gust of 21 m/s", (7, 2)),
                            (100, 2, "no rain reading", (4, 4)), (101, 0, "gauge back", (4, 0)),
                            (150, 1, "battery at 20 %", (9, 0))], dtype=row)


def build(path):
    with h5py.File(path, "w", libver=("v108", "v108")) as f:
        f.attrs["station"] = "Brocken"
        f.attrs["height"] = np.int32(1141)
        readings(f)
        events(f)
        f["image"] = (np.arange(48).reshape(6, 8) * 5 % 32).astype("u1")
        f["words/name"] = np.array(WORDS, dtype=h5py.string_dtype())
        f["words/vector"] = np.array(VECTORS, "f4")
        tags = f.create_dataset("words/synonyms", (len(WORDS),), dtype=h5py.vlen_dtype("i4"))
        tags[0], tags[1], tags[3] = [2], [0, 2], [4]
        f["latest"] = h5py.SoftLink("/readings/temperature")
        f["main"] = np.array([f["readings/temperature"].ref, f["readings/rain"].ref], dtype=h5py.ref_dtype)
        f["last_year"] = h5py.ExternalLink("station-2024.h5", "/readings")


if __name__ == "__main__":
    build(pathlib.Path(__file__).with_name("station.h5"))
