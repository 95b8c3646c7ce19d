#!/usr/bin/env python3
"""Decodes a change set by Documentation/ChangeSetFormat.md alone and prints it as JSON.

Shares no code with the Swift decoder, so that the page is proved complete.
Usage: decode_changeset.py FILE...   prints one JSON object, file name to change set.
"""

import hashlib
import json
import os
import struct
import sys
import zlib

M64 = (1 << 64) - 1


def inflate(data):
    stream = zlib.decompressobj(-15)
    result = stream.decompress(data)
    if not stream.eof or stream.unused_data:
        raise ValueError("deflate")
    return result


class Reader:
    def __init__(self, data):
        self.data, self.at = data, 0

    def take(self, n):
        if n < 0 or self.at + n > len(self.data):
            raise ValueError("truncated at %d" % self.at)
        self.at += n
        return self.data[self.at - n : self.at]

    def byte(self):
        return self.take(1)[0]

    def varint(self):
        result, shift = 0, 0
        while True:
            byte = self.byte()
            result |= (byte & 0x7F) << shift
            if byte < 0x80:
                if byte == 0 and shift:
                    raise ValueError("long varint")
                if result > M64:
                    raise ValueError("varint over 64 bits")
                return result
            shift += 7

    def zigzag(self):
        word = self.varint()
        return (word >> 1) ^ -(word & 1)

    def name(self):
        return self.take(self.varint()).decode("utf-8")

    def end(self):
        if self.at != len(self.data):
            raise ValueError("bytes left over at %d" % self.at)


def envelope(data):
    if data[:8] != bytes.fromhex("89 44 53 59 4E 43 0D 0A"):
        raise ValueError("magic")
    version, kind, suite, flags = struct.unpack_from("<HBBI", data, 8)
    if version != 1 or suite != 0 or (flags >> 16) & ~1:
        raise ValueError("too new")
    fields, public, private, stored, whole = struct.unpack_from("<IIQQQ", data, 56)
    r = Reader(data)
    r.take(88 + fields)
    public, private, body = r.take(public), r.take(private), r.take(stored)
    if hashlib.sha256(data[: r.at]).digest() != r.take(32):
        raise ValueError("hash")
    (signature,) = struct.unpack("<I", data[-4:])
    r.take(signature + 4)
    r.end()
    if flags & 1 << 16:
        body = inflate(body)
    if len(body) != whole:
        raise ValueError("length of the body")
    return kind, public, private, body


class Lanes:
    def __init__(self, lanes):
        self.lanes = [Reader(lane) for lane in lanes]
        self.s = self.lanes[0]

    def planes(self, w, n):
        lane = self.s.byte()
        where = list(self.s.take(w)) if lane == 255 else [lane] * w
        return [self.lanes[lane].take(n) for lane in where]

    def numbers(self, w, n):
        planes = self.planes(w, n)
        return [sum(plane[i] << 8 * k for k, plane in enumerate(planes)) for i in range(n)]

    def integers(self, n):
        if n == 0:
            return []
        mode = self.s.byte()
        if mode == 0:
            return [self.s.zigzag() & M64] * n
        if mode == 1:
            base = self.s.zigzag()
            return [(base + x) & M64 for x in self.numbers(self.s.byte(), n)]
        if mode == 2:
            first, base = self.s.zigzag(), self.s.zigzag()
            w = self.s.byte()
            result = [first & M64]
            if n > 1:
                for x in self.numbers(w, n - 1) if w else [0] * (n - 1):
                    result.append((result[-1] + base + x) & M64)
            return result
        if mode == 3:
            d = self.s.varint()
            values = [self.s.zigzag() & M64]
            for _ in range(d - 1):
                values.append((values[-1] + self.s.varint()) & M64)
            return [values[i] for i in self.numbers(1 if d <= 256 else 2, n)]
        raise ValueError("integer mode")

    def contents(self, n):
        if n == 0:
            return []
        mode = self.s.byte()
        if mode == 0:
            lengths = self.integers(n)
            lane = self.lanes[self.s.byte()]
            return [lane.take(length) for length in lengths]
        if mode == 1:
            transform, w = self.s.byte(), self.s.byte()
            planes = self.planes(w, n)
            strings = [bytes(plane[i] for plane in planes) for i in range(n)]
            if transform & 4:
                previous = 0
                for i, string in enumerate(strings):
                    previous = (previous + int.from_bytes(string[:8], "big")) & M64
                    strings[i] = previous.to_bytes(8, "big") + string[8:]
            if transform & 3:
                prefix = b"\x03\x24" if transform & 2 else b""
                h = [string.hex() for string in strings]
                strings = [
                    prefix + "-".join((x[:8], x[8:12], x[12:16], x[16:20], x[20:])).encode()
                    for x in h
                ]
            return strings
        if mode == 2:
            shared, rests = self.integers(n), self.integers(n)
            lane = self.lanes[self.s.byte()]
            result, previous = [], b""
            for keep, rest in zip(shared, rests):
                if keep > len(previous):
                    raise ValueError("shared length")
                previous = previous[:keep] + lane.take(rest)
                result.append(previous)
            return result
        if mode == 3:
            strings = self.contents(self.s.varint())
            return [strings[i] for i in self.integers(n)]
        raise ValueError("content mode")

    def column(self, n):
        kinds = self.integers(n)
        integers = iter(self.integers(kinds.count(1)))
        reals = iter(self.integers(kinds.count(2)))
        contents = iter(self.contents(sum(kind >= 3 for kind in kinds)))
        values = []
        for kind in kinds:
            if kind == 0:
                values.append("null")
            elif kind == 1:
                word = next(integers)
                values.append("integer %d" % (word - (1 << 64) if word >> 63 else word))
            elif kind == 2:
                values.append("real %016x" % next(reals))
            else:
                values.append(("text", "blob", "identity")[kind - 3] + " " + next(contents).hex())
        return values

    def table(self):
        s = self.s
        t = {"table": s.name(), "identity": s.byte()}
        t["keyColumns"] = [s.name() for _ in range(s.varint())]
        t["columns"] = [s.name() for _ in range(s.varint())]
        n = s.varint()
        t["actions"] = self.integers(n)
        t["keys"] = [
            self.column(n) for _ in range(2 if t["identity"] == 1 else len(t["keyColumns"]))
        ]
        t["times"] = ["%d" % time for time in self.integers(n)]
        shapes = []
        for _ in range(s.varint()):
            shape, following = [], 0
            for _ in range(s.varint()):
                shape.append(following + s.varint())
                following = shape[-1] + 1
            shapes.append(shape)
        t["shapes"], t["rowShapes"] = shapes, self.integers(n)
        t["cells"] = [
            self.column(sum(c in shapes[shape] for shape in t["rowShapes"]))
            for c in range(len(t["columns"]))
        ]
        t["exceptions"] = []
        count = s.varint()
        if count:
            rows, columns, times = (self.integers(count) for _ in range(3))
            clients = [self.lanes[3].take(16).hex() for _ in range(s.varint())]
            authors = self.integers(count)
            t["exceptions"] = [
                [row, column - 1, "%d" % time, clients[author]]
                for row, column, time, author in zip(rows, columns, times, authors)
            ]
        t["moves"] = []
        count = s.varint()
        if count:
            rows = self.integers(count)
            t["moves"] = [[r, d.hex()] for r, d in zip(rows, self.contents(count))]
        return t


def change_set(data):
    kind, public, private, body = envelope(data)
    if kind != 6:
        raise ValueError("type")
    r = Reader(public)
    result = {name: r.take(16).hex() for name in ("root", "document", "generation", "client")}
    result["number"] = "%d" % struct.unpack("<Q", r.take(8))
    result["previous"] = r.take(32).hex() if r.byte() else ""
    r.end()

    r = Reader(private)
    result["dependencies"] = [
        [r.take(16).hex(), "%d" % r.varint(), r.take(32).hex()] for _ in range(r.varint())
    ]
    result["schema"] = r.take(32).hex()
    if r.byte():
        r.take(16)
    tables, rows = r.varint(), r.varint()
    lanes, start = [], 0
    for _ in range(4):
        compressed, count = r.byte(), r.varint()
        stored = r.varint() if compressed else count
        lane = body[start : start + stored]
        start += stored
        lanes.append(inflate(lane) if compressed else lane)
        if len(lanes[-1]) != count:
            raise ValueError("length of a lane")
    r.end()

    lanes = Lanes(lanes)
    result["tables"] = [lanes.table() for _ in range(tables)]
    for lane in lanes.lanes:
        lane.end()
    if sum(len(table["actions"]) for table in result["tables"]) != rows:
        raise ValueError("number of rows")
    return result


def main():
    output = {}
    for path in sys.argv[1:]:
        with open(path, "rb") as file:
            output[os.path.basename(path)] = change_set(file.read())
    json.dump(output, sys.stdout, sort_keys=True)


if __name__ == "__main__":
    main()
