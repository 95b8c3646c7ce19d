#!/usr/bin/env python3
"""Reads the files of an encrypted application by Documentation/SecurityFormat.md alone.

Shares no code with the Swift reader, so that the page is proved complete.
Usage: read_sealed.py FOLDER [alone]   prints one JSON object about Fixtures/Security/v1.

It begins with what a person or a device would have: passphrase, recovery key, the seeds of a device.
The package `cryptography` makes it faster, and from release 48 on opens HPKE; without it everything is
computed here, and the epoch keys are taken from the known answers. With `alone` it does without.
"""

import hashlib
import hmac
import json
import pathlib
import struct
import sys
import unicodedata

if sys.argv[2:] == ["alone"]:
    sys.modules["cryptography"] = None
try:
    from cryptography.hazmat.primitives.ciphers.aead import ChaCha20Poly1305
except ImportError:
    ChaCha20Poly1305 = None
try:
    from cryptography.hazmat.primitives import hpke
    from cryptography.hazmat.primitives.asymmetric import mlkem, x25519
    from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
except ImportError:
    hpke = None


class Refused(Exception):
    pass


def require(condition, what):
    if not condition:
        raise Refused(what)


# Base 32, transcripts, hashes, HKDF

ALPHABET = "abcdefghijklmnopqrstuvwxyz234567"


def base32(data):
    number, bits = int.from_bytes(data, "big"), len(data) * 8
    count = -(-bits // 5)
    number <<= count * 5 - bits
    return "".join(ALPHABET[number >> 5 * i & 31] for i in reversed(range(count)))


def unbase32(text):
    number = 0
    for character in text:
        number = number << 5 | ALPHABET.index(character)
    bits = len(text) * 5
    return (number >> bits % 8).to_bytes(bits // 8, "big")


def transcript(label, *parts):
    parts = (("DocumentSync 1 " + label).encode(),) + parts
    return b"".join(struct.pack("<I", len(part)) + part for part in parts)


def h(label, *parts):
    return hashlib.sha256(transcript(label, *parts)).digest()


def hkdf(key, salt, label, *parts):
    extracted = hmac.new(salt or bytes(32), key, hashlib.sha256).digest()
    return hmac.new(extracted, transcript(label, *parts) + b"\x01", hashlib.sha256).digest()


# ChaCha20-Poly1305 (RFC 8439)

M32 = 0xFFFFFFFF


def chacha_block(key, counter, nonce):
    state = [0x61707865, 0x3320646E, 0x79622D32, 0x6B206574]
    state += struct.unpack("<8L", key) + (counter,) + struct.unpack("<3L", nonce)
    x = list(state)

    def quarter(a, b, c, d):
        for p, q, r, n in ((a, b, d, 16), (c, d, b, 12), (a, b, d, 8), (c, d, b, 7)):
            x[p] = x[p] + x[q] & M32
            v = x[r] ^ x[p]
            x[r] = (v << n | v >> 32 - n) & M32

    for _ in range(10):
        quarter(0, 4, 8, 12), quarter(1, 5, 9, 13), quarter(2, 6, 10, 14), quarter(3, 7, 11, 15)
        quarter(0, 5, 10, 15), quarter(1, 6, 11, 12), quarter(2, 7, 8, 13), quarter(3, 4, 9, 14)
    return struct.pack("<16L", *(a + b & M32 for a, b in zip(x, state)))


def unseal(key, sealed, nonce=bytes(12), associated=b""):
    """Opens an AEAD box."""
    require(len(sealed) >= 16, "box")
    if ChaCha20Poly1305:
        try:
            return ChaCha20Poly1305(key).decrypt(nonce, sealed, associated)
        except Exception:
            raise Refused("box")
    text, tag = sealed[:-16], sealed[-16:]
    one = chacha_block(key, 0, nonce)
    r = int.from_bytes(one[:16], "little") & 0x0FFFFFFC0FFFFFFC0FFFFFFC0FFFFFFF
    s = int.from_bytes(one[16:32], "little")
    pad = lambda data: data + bytes(-len(data) % 16)
    message = pad(associated) + pad(text) + struct.pack("<QQ", len(associated), len(text))
    total = 0
    for i in range(0, len(message), 16):
        total = (total + int.from_bytes(message[i : i + 16] + b"\x01", "little")) * r % (2**130 - 5)
    require((total + s) % 2**128 == int.from_bytes(tag, "little"), "box")
    stream = b"".join(chacha_block(key, 1 + i, nonce) for i in range(-(-len(text) // 64)))
    return bytes(a ^ b for a, b in zip(text, stream))


# Ed25519 (RFC 8032)

P = 2**255 - 19
Q = 2**252 + 27742317777372353535851937790883648493
D = -121665 * pow(121666, -1, P) % P


def add(a, b):
    e = (a[1] - a[0]) * (b[1] - b[0]) % P
    f = (a[1] + a[0]) * (b[1] + b[0]) % P
    g, k = 2 * a[3] * b[3] * D % P, 2 * a[2] * b[2] % P
    return ((f - e) * (k - g) % P, (k + g) * (f + e) % P, (k - g) * (k + g) % P, (f - e) * (f + e) % P)


def times(n, point):
    result = (0, 1, 1, 0)
    while n:
        if n & 1:
            result = add(result, point)
        point, n = add(point, point), n >> 1
    return result


def recover(y, sign):
    square = (y * y - 1) * pow(D * y * y + 1, -1, P) % P
    x = pow(square, (P + 3) // 8, P)
    if (x * x - square) % P:
        x = x * pow(2, (P - 1) // 4, P) % P
    require((x * x - square) % P == 0 and y < P, "point")
    x = P - x if x & 1 != sign else x
    return (x, y, 1, x * y % P)


BASE = recover(4 * pow(5, -1, P) % P, 0)


def compress(point):
    inverse = pow(point[2], -1, P)
    x, y = point[0] * inverse % P, point[1] * inverse % P
    return (y | (x & 1) << 255).to_bytes(32, "little")


def decompress(data):
    number = int.from_bytes(data, "little")
    return recover(number & 2**255 - 1, number >> 255)


def ed25519_public(seed):
    number = int.from_bytes(hashlib.sha512(seed).digest()[:32], "little")
    return compress(times(number & (1 << 254) - 8 | 1 << 254, BASE))


def verify(public, signature, message):
    require(len(signature) == 64, "signature")
    s = int.from_bytes(signature[32:], "little")
    require(s < Q, "signature")
    k = int.from_bytes(hashlib.sha512(signature[:32] + public + message).digest(), "little") % Q
    left = times(s, BASE)
    right = add(decompress(signature[:32]), times(k, decompress(public)))
    require(compress(left) == compress(right), "signature")


# X-Wing and HPKE


def xwing(seed):
    expanded = hashlib.shake_256(seed).digest(96)
    first = mlkem.MLKEM768PrivateKey.from_seed_bytes(expanded[:64])
    second = x25519.X25519PrivateKey.from_private_bytes(expanded[64:])
    public = first.public_key().public_bytes_raw() + second.public_key().public_bytes(
        Encoding.Raw, PublicFormat.Raw)
    return hpke.MLKEM768X25519PrivateKey(first, second), public


def open_hpke(private, sealed, info):
    suite = hpke.Suite(hpke.KEM.MLKEM768_X25519, hpke.KDF.HKDF_SHA256, hpke.AEAD.AES_256_GCM)
    return suite.decrypt(sealed, private, info)


# SipHash-2-4 with 128 bits of output

M64 = (1 << 64) - 1


def siphash(key, data):
    k0, k1 = struct.unpack("<QQ", key)
    v = [k0 ^ 0x736F6D6570736575, k1 ^ 0x646F72616E646F6D ^ 0xEE,
         k0 ^ 0x6C7967656E657261, k1 ^ 0x7465646279746573]
    turn = lambda word, n: (word << n | word >> 64 - n) & M64

    def rounds(count):
        for _ in range(count):
            v[0] = v[0] + v[1] & M64
            v[1] = turn(v[1], 13) ^ v[0]
            v[0] = turn(v[0], 32)
            v[2] = v[2] + v[3] & M64
            v[3] = turn(v[3], 16) ^ v[2]
            v[0] = v[0] + v[3] & M64
            v[3] = turn(v[3], 21) ^ v[0]
            v[2] = v[2] + v[1] & M64
            v[1] = turn(v[1], 17) ^ v[2]
            v[2] = turn(v[2], 32)

    padded = data + bytes(7 - len(data) % 8) + bytes([len(data) & 255])
    for (word,) in struct.iter_unpack("<Q", padded):
        v[3] ^= word
        rounds(2)
        v[0] ^= word
    v[2] ^= 0xEE
    rounds(4)
    first = v[0] ^ v[1] ^ v[2] ^ v[3]
    v[1] ^= 0xDD
    rounds(4)
    return struct.pack("<QQ", first, v[0] ^ v[1] ^ v[2] ^ v[3])


# Files


class Reader:
    def __init__(self, data):
        self.data, self.at = data, 0

    def take(self, count):
        require(0 <= count <= len(self.data) - self.at, "truncated")
        self.at += count
        return self.data[self.at - count : self.at]

    def number(self, size):
        return int.from_bytes(self.take(size), "little")

    def optional(self, count):
        flag = self.number(1)
        require(flag < 2, "optional value")
        return self.take(count) if flag else None

    def end(self):
        require(self.at == len(self.data), "bytes left over")


MAGIC = bytes.fromhex("894453594e430d0a")


def outer(data, kind, signed):
    """The body, the hash and the signature of a file of suite 0 with nothing else."""
    r = Reader(data)
    require(r.take(8) == MAGIC and r.number(2) == 1 and r.number(1) == kind, "magic")
    require(r.take(61) == bytes(61), "reserved")
    count = r.number(8)
    require(r.number(8) == count, "lengths")
    body = r.take(count)
    before = r.at
    digest = r.take(32)
    require(digest == hashlib.sha256(data[:before]).digest(), "hash")
    signature = r.take(64 if signed else 0)
    require(r.number(4) == len(signature), "length of the signature")
    r.end()
    return body, digest, signature


def reference(r):
    return r.take(16), r.take(16), r.take(4), r.take(32)


def epoch_identifier(key, root, document, generation, number):
    return hkdf(key, b"", "epoch", root, document, generation, number)


class Application:
    """What a reader finds out from a folder of statements."""

    def __init__(self, root, enrolment):
        self.root, self.enrolment = root, enrolment
        self.keys, self.epochs, self.persons = {}, {}, []

    def statement(self, data, private):
        body, digest, signature = outer(data, 12, True)
        r = Reader(body)
        require(r.number(1) == 1, "version")
        kind = r.number(1)
        root, author, number, previous = r.take(16), r.take(16), r.number(8), r.optional(32)
        require(root == self.root, "root")
        enrolled = author == root
        require(enrolled == (kind < 3), "kind")
        require((number == 0) == enrolled and (previous is None) == (number < 2), "place")
        key = self.enrolment if enrolled else self.keys[author]
        verify(key, signature, transcript("statement signature", root, digest))
        if kind in (1, 3):
            signing, sealing = r.take(32), r.take(1216)
            device = h("device", b"\x01", signing, sealing)[:16]
            self.keys[device] = signing
        if kind == 1:
            self.person(device, r.optional(320))
        elif kind == 2:
            r.take(16), r.optional(32)
        elif kind == 3:
            require(r.number(1) in (1, 2), "role")
            self.documents(r, 1)
            r.optional(56)
            self.person(device, r.optional(320))
        elif kind == 4:
            r.take(16)
            self.documents(r, 0)
        elif kind == 5:
            self.open_keys(r, author, private)
        else:
            require(kind == 6 and r.number(1) in (3, 4), "type")
            r.take(48)
        r.end()

    def documents(self, r, least):
        found = [r.take(16) for _ in range(r.number(4))]
        require(len(found) >= least and found == sorted(set(found)), "documents")

    def person(self, device, box):
        if box is None:
            return
        key = self.epochs[box[:32]]
        plain = unseal(hkdf(key, box[32:48], "person key", device), box[48:])
        self.persons.append(plain[1 : 1 + plain[0]].decode())

    def open_keys(self, r, author, private):
        parts = reference(r)
        former = r.optional(80)
        number = int.from_bytes(parts[2], "little")
        require((number == 1) == (former is None), "number")
        recipients = [(r.take(16), r.take(1120 + 48)) for _ in range(r.number(4))]
        names = [name for name, _ in recipients]
        require(names and names == sorted(set(names)), "recipients")
        if private is None:
            return
        info = transcript("epoch sealing", self.root, author, b"".join(parts), former or b"",
                          b"".join(names), self.root)
        key = open_hpke(private, dict(recipients)[self.root], info)
        self.epoch(parts, key)
        if former:
            before = (parts[0], parts[1], struct.pack("<I", number - 1), former[:32])
            sealing = hkdf(key, b"", "former epoch key", self.root, b"".join(before), b"".join(parts))
            self.epoch(before, unseal(sealing, former[32:]))

    def epoch(self, parts, key):
        require(epoch_identifier(key, self.root, *parts[:3]) == parts[3], "epoch")
        self.epochs[parts[3]] = key


def padded(count):
    count = max(count, 1024)
    e = count.bit_length() - 1
    unit = 2 ** (e - e.bit_length())
    return -(-count // unit) * unit


def nonce(chunk, last):
    return chunk.to_bytes(11, "big") + bytes([last])


def without_hash(path, trailer):
    """The path without the hash, and whether its hash is right."""
    fragment = base32(trailer)[:10]
    folder, _, name = path.rpartition("/")
    parts = name.split(".")
    if name.startswith(("generation.", "deleted.")):
        return path
    position = 4 if len(parts) == 5 else 1
    require(parts[position] == fragment, "name")
    parts[position] = ""
    return folder + "/" + ".".join(parts)


def sealed(data, path, entry, application):
    """Opens a sealed file, with the checks in the order of the page."""
    require(len(data) >= 88 + 100, "size")
    r = Reader(data)
    require(r.take(8) == MAGIC and r.number(2) == 1, "magic")
    kind, suite, flags, number, chunk = r.number(1), r.number(1), r.number(4), r.take(4), r.number(4)
    salt, signer = r.take(16), r.take(16)
    fields, public, private, count, body = (r.number(n) for n in (4, 4, 8, 8, 8))
    start = 88 + fields + public
    require(len(data) == start + count + 100, "size")
    chunks = -(-count // (65536 + 16))
    plain_count = count - 16 * chunks
    require(plain_count >= 1024 and padded(plain_count) == plain_count, "size")
    trailer, signature = data[-100:-68], data[-68:-4]
    header = Reader(data[88 + fields : start])
    root, document, generation, client = (header.take(16) for _ in range(4))
    ordinal = header.number(8)
    require(kind == entry["type"] and ordinal == entry["number"], "name")
    require(root == application.root and base32(client) == entry["client"], "name")
    require(base32(document) in path, "name")
    require(base32(generation) in path or kind == 4, "name")
    key_path = without_hash(path, trailer)
    require(hashlib.sha256(data[:-100]).digest() == trailer, "trailer")
    require(suite == 1 and flags >> 16 == 0 and chunk == 65536 and private == 0 and body == 0, "form")
    require(data[-4:] == struct.pack("<I", 64), "form")
    r = Reader(data[88 : 88 + fields])
    found = {}
    while r.at < len(r.data):
        tag, length = r.number(2), r.number(2)
        require(not found or tag > max(found), "form")
        require(tag < 0x8000 or tag in (0x8001, 0x8002), "form")
        found[tag] = r.take(length)
    seed, identifier = found[0x8001], found[0x8002]
    verify(application.keys[signer], signature,
           transcript("file signature", root, path.encode(), trailer))
    require(h("client", signer, seed)[:16] == client, "client")
    key = application.epochs[identifier]
    require(epoch_identifier(key, root, document, generation, number) == identifier, "epoch")
    file_key = hkdf(key, salt, "file key", root, signer, key_path.encode())
    plain, position = b"", start
    for index in range(chunks):
        end = min(position + 65552, start + count)
        plain += unseal(
            file_key, data[position:end], nonce(index, index == chunks - 1), data[:start])
        position = end
    r = Reader(plain)
    inner, header_count, stored, length = r.number(4), r.number(8), r.number(8), r.number(8)
    private_header, content = r.take(header_count), r.take(stored)
    require(inner in (0, 1 << 16) and (inner or stored == length), "content")
    require(padded(r.at) == len(plain) and not any(plain[r.at :]), "padding")
    return {
        "name": entry["name"], "type": kind, "path": path, "pathWithoutHash": key_path,
        "number": ordinal, "client": base32(client), "signer": base32(signer),
        "epoch": int.from_bytes(number, "little"), "publicRest": header.data[72:].hex(),
        "privateHeaderSHA256": hashlib.sha256(private_header).hexdigest(),
        "isCompressed": inner != 0, "bodyByteCount": length, "storedByteCount": stored,
        "storedSHA256": hashlib.sha256(content).hexdigest(),
    }


# What a person or a device has


def slot(data, kind, root, secret):
    body = Reader(data)
    require(body.take(8) == MAGIC and body.take(4) == b"\x01\x00\x0b\x00", "slot")
    body.take(76)
    body = Reader(body.take(84))
    head = body.take(36)
    require(head[:4] == (b"\x01\x11\x08\x01" if kind == 1 else b"\x02\x00\x00\x00"), "parameters")
    salt = head[4:]
    if kind == 1:
        text = unicodedata.normalize("NFC", secret).encode()
        key = hashlib.scrypt(text, salt=transcript("passphrase slot", salt), n=2**17, r=8, p=1,
                             maxmem=200 << 20, dklen=32)
    else:
        key = hkdf(secret, salt, "recovery slot")
    return unseal(key, body.take(48), associated=head + root)


def recovery_key(text):
    groups = text.split("-")
    for index, group in enumerate(groups):
        check = base32(h("recovery group", bytes([index]), group[:4].encode()))[0]
        require(group[4] == check, "group %d" % (index + 1))
    return unbase32("".join(group[:4] for group in groups))


def main():
    folder = pathlib.Path(sys.argv[1])
    given = json.loads((folder / "answers.json").read_text())
    found = {}
    root = unbase32(given["root"])
    secret = slot((folder / "slot-passphrase").read_bytes(), 1, root, given["passphrase"])
    written = recovery_key(given["recoveryKey"])
    require(slot((folder / "slot-recovery").read_bytes(), 2, root, written) == secret, "slots")
    found["applicationSecret"] = secret.hex()

    seed = hkdf(secret, b"", "enrolment key")
    enrolment = ed25519_public(seed)
    owner_seed = hkdf(secret, b"", "owner key")
    private, owner_public = xwing(owner_seed) if hpke else (
        None, bytes.fromhex(given["ownerPublicKey"]))
    found["enrolmentSeed"], found["enrolmentPublicKey"] = seed.hex(), enrolment.hex()
    found["ownerSeed"], found["ownerPublicKey"] = owner_seed.hex(), owner_public.hex()
    found["root"] = base32(h("root", b"\x01", enrolment, owner_public)[:16])
    name_key = hkdf(secret, b"", "name key")
    found["nameKey"] = name_key.hex()
    names = "com.example.notes".encode(), "Notes – Ëtüde".encode()
    found["folderName"] = base32(
        hmac.new(name_key, transcript("document name", *names), hashlib.sha256).digest()[:16])
    for who in ("owner", "writer"):
        signing = ed25519_public(bytes.fromhex(given[who + "SigningSeed"]))
        opening = xwing(bytes.fromhex(given[who + "OpeningSeed"]))[1] if hpke else (
            bytes.fromhex(given[who + "SealingKey"]))
        device = h("device", b"\x01", signing, opening)[:16]
        found[who + "VerifyingKey"], found[who + "SealingKey"] = signing.hex(), opening.hex()
        found[who + "Device"] = base32(device)
        found[who + "Client"] = base32(
            h("client", device, bytes.fromhex(given[who + "ClientSeed"]))[:16])
    document, generation = unbase32(given["document"]), unbase32(given["generation"])
    for number in (1, 2):
        found["epoch%dIdentifier" % number] = epoch_identifier(
            bytes.fromhex(given["epoch%dKey" % number]), root, document, generation,
            struct.pack("<I", number)).hex()
    found["fileKeyOfSevens"] = hkdf(
        b"\x07" * 32, bytes(range(16)), "file key", root, unbase32(found["ownerDevice"]),
        b"Documents/x/1..syncchg").hex()
    line = unbase32(given["invitation"][3:])
    require(h("invitation check", line[:104])[:5] == line[104:], "invitation")
    found["requestName"] = base32(hkdf(line[72:104], b"", "request name", line[:72])[:16])
    part = lambda data: struct.pack("<I", len(data)) + data
    total = 0
    for table, identity, stamps in ((b"note", b"\1\2\3", b"\4\5"), ("Ëtüde".encode(), b"", b"\xff")):
        row = part(table) + part(identity) + part(stamps)
        total += int.from_bytes(siphash(h("state digest", generation)[:16], row), "big")
    found["stateDigest"] = (total % 2**128).to_bytes(16, "big").hex()
    found["nonce"] = nonce(0x01020304, True).hex()
    found["padded"] = " ".join(str(padded(n)) for n in (0, 1025, 4097, 70_000, 9_999_999))

    application = Application(root, enrolment)
    if not private:
        for number in (1, 2):
            application.epochs[bytes.fromhex(found["epoch%dIdentifier" % number])] = (
                bytes.fromhex(given["epoch%dKey" % number]))
    for number in range(1, 1 + len(list((folder / "statements").iterdir()))):
        application.statement((folder / "statements" / str(number)).read_bytes(), private)
    require(application.persons == ["Zoë"], "persons")
    for number in (1, 2):
        key = application.epochs[bytes.fromhex(found["epoch%dIdentifier" % number])]
        found["epoch%dKey" % number] = key.hex()

    body, _, _ = outer((folder / "request").read_bytes(), 13, False)
    plain = unseal(hkdf(line[72:104], body[:16], "request key", line[:72]), body[16:])
    verify(plain[:32], plain[1504:],
           transcript("request signature", line[:72], body[:16], plain[:1504]))
    require(plain[1249 : 1249 + plain[1248]].decode() == "Zoë", "request")

    files, refused = [], {}
    for entry in json.loads((folder / "files.json").read_text()):
        data = (folder / "sealed" / entry["name"]).read_bytes()
        files.append(sealed(data, entry["path"], entry, application))
        refused[entry["name"]] = 0
        for position in (10, 24, 41, 100, 150, 300, len(data) - 101, len(data) - 80, len(data) - 20):
            changed = data[:position] + bytes([data[position] ^ 1]) + data[position + 1 :]
            try:
                sealed(changed, entry["path"], entry, application)
                sys.exit("%s: byte %d was changed" % (entry["name"], position))
            except Refused:
                refused[entry["name"]] += 1
    json.dump({"answers": found, "files": files, "refused": refused}, sys.stdout, indent=1)


if __name__ == "__main__":
    main()
