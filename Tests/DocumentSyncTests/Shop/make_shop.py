#!/usr/bin/env python3
"""Writes the database of a small wholesaler: fourteen related tables and
about 50,000 rows. It knows nothing of syncing.

Usage: make_shop.py PATH SEED
"""
import random
import sqlite3
import sys
import uuid

path, seed = sys.argv[1], int(sys.argv[2])
rnd = random.Random(seed)
db = sqlite3.connect(path)
db.execute("PRAGMA journal_mode = WAL")
db.executescript(
    """
    CREATE TABLE country (code TEXT PRIMARY KEY, name TEXT NOT NULL, vat REAL);
    CREATE TABLE city (id INTEGER PRIMARY KEY, name TEXT NOT NULL,
        country TEXT NOT NULL REFERENCES country ON UPDATE CASCADE);
    CREATE TABLE customer (id INTEGER PRIMARY KEY AUTOINCREMENT, name TEXT NOT NULL,
        email TEXT UNIQUE COLLATE NOCASE, city INTEGER REFERENCES city ON DELETE SET NULL,
        since TEXT DEFAULT CURRENT_DATE, credit INTEGER DEFAULT 0 CHECK (credit >= 0));
    CREATE TABLE supplier (id INTEGER PRIMARY KEY, name TEXT, city INTEGER REFERENCES city);
    CREATE TABLE category (id INTEGER PRIMARY KEY, name TEXT,
        parent INTEGER REFERENCES category ON DELETE CASCADE, UNIQUE (parent, name));
    CREATE TABLE product (id INTEGER PRIMARY KEY, sku TEXT NOT NULL UNIQUE, name TEXT,
        category INTEGER REFERENCES category ON DELETE SET NULL,
        supplier INTEGER REFERENCES supplier ON DELETE CASCADE,
        weight REAL, label AS (sku || ' ' || name));
    CREATE TABLE warehouse (code TEXT PRIMARY KEY, city INTEGER REFERENCES city) WITHOUT ROWID;
    CREATE TABLE stock (warehouse TEXT REFERENCES warehouse ON UPDATE CASCADE ON DELETE CASCADE,
        product INTEGER REFERENCES product ON DELETE CASCADE, amount INTEGER NOT NULL DEFAULT 0,
        PRIMARY KEY (warehouse, product)) WITHOUT ROWID;
    CREATE TABLE price (product INTEGER REFERENCES product ON DELETE CASCADE, since TEXT,
        cents INTEGER NOT NULL, PRIMARY KEY (product, since));
    CREATE TABLE "order" (id INTEGER PRIMARY KEY, customer INTEGER NOT NULL REFERENCES customer
        ON DELETE CASCADE, placed TEXT, note TEXT);
    CREATE TABLE order_line ("order" INTEGER NOT NULL REFERENCES "order" ON DELETE CASCADE,
        line INTEGER NOT NULL, product INTEGER REFERENCES product, amount INTEGER,
        PRIMARY KEY ("order", line));
    CREATE TABLE memo (id TEXT PRIMARY KEY, title TEXT, body TEXT, stars INTEGER) STRICT;
    CREATE TABLE tag (name TEXT PRIMARY KEY COLLATE NOCASE, colour) WITHOUT ROWID;
    CREATE TABLE memo_tag (memo TEXT REFERENCES memo ON DELETE CASCADE,
        tag TEXT REFERENCES tag ON UPDATE CASCADE ON DELETE CASCADE, PRIMARY KEY (memo, tag));
    CREATE INDEX order_line_product ON order_line (product);
    CREATE INDEX order_customer ON "order" (customer);
    CREATE VIEW late AS SELECT * FROM "order" WHERE placed < '2020';
    """
)


def many(sql, rows):
    db.executemany(sql, rows)


codes = [f"{chr(65 + i // 26)}{chr(65 + i % 26)}" for i in range(40)]
many("INSERT INTO country VALUES (?,?,?)", ((c, "Land " + c, rnd.random()) for c in codes))
many("INSERT INTO city VALUES (?,?,?)", ((i, f"City {i}", rnd.choice(codes)) for i in range(1, 401)))
many(
    "INSERT INTO customer (id, name, email, city, credit) VALUES (?,?,?,?,?)",
    ((i, f"Customer {i}", f"c{i}@example.org", rnd.randint(1, 400), i % 90) for i in range(1, 5001)),
)
many("INSERT INTO supplier VALUES (?,?,?)", ((i, f"S{i}", rnd.randint(1, 400)) for i in range(1, 201)))
many(
    "INSERT INTO category VALUES (?,?,?)",
    ((i, f"Category {i}", None if i < 20 else rnd.randint(1, i - 1)) for i in range(1, 301)),
)
many(
    "INSERT INTO product (id, sku, name, category, supplier, weight) VALUES (?,?,?,?,?,?)",
    (
        (i, f"SKU-{i:05}", f"Product {i}", rnd.randint(1, 300), rnd.randint(1, 200), rnd.random())
        for i in range(1, 4001)
    ),
)
houses = [f"W{i:02}" for i in range(12)]
many("INSERT INTO warehouse VALUES (?,?)", ((h, rnd.randint(1, 400)) for h in houses))
pairs = rnd.sample([(h, p) for h in houses for p in range(1, 4001)], 9000)
many("INSERT INTO stock VALUES (?,?,?)", ((h, p, rnd.randint(0, 500)) for h, p in pairs))
many(
    "INSERT INTO price VALUES (?,?,?)",
    ((p, f"20{y}-01-01", rnd.randint(100, 99999)) for p in range(1, 4001) for y in (23,)),
)
many(
    'INSERT INTO "order" VALUES (?,?,?,?)',
    ((i, rnd.randint(1, 5000), f"20{rnd.randint(18, 25)}-0{rnd.randint(1, 9)}-11", None) for i in range(1, 7001)),
)
many(
    "INSERT INTO order_line VALUES (?,?,?,?)",
    ((o, n, rnd.randint(1, 4000), rnd.randint(1, 9)) for o in range(1, 7001) for n in (1, 2)),
)
memos = [str(uuid.UUID(int=rnd.getrandbits(128), version=4)) for _ in range(4000)]
many("INSERT INTO memo VALUES (?,?,?,?)", ((m, "Memo " + m[:4], "text " * 20, 1) for m in memos))
tags = [f"tag{i}" for i in range(50)]
many("INSERT INTO tag VALUES (?,?)", ((t, rnd.choice([1, 1.5, "red", None])) for t in tags))
many("INSERT INTO memo_tag VALUES (?,?)", ((m, t) for m in memos for t in rnd.sample(tags, 1)))
db.commit()
db.close()
