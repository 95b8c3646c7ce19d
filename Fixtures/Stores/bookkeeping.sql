-- Version 1
CREATE TABLE docsync_meta (key TEXT PRIMARY KEY, value BLOB) WITHOUT ROWID;
CREATE TABLE docsync_table (id INTEGER PRIMARY KEY, name TEXT NOT NULL, wire TEXT NOT NULL, identity TEXT NOT NULL, unstamped INTEGER NOT NULL, origin INTEGER NOT NULL);
CREATE TABLE docsync_column (tbl INTEGER, bit INTEGER, name TEXT NOT NULL, wire TEXT NOT NULL, refers INTEGER, PRIMARY KEY (tbl, bit)) WITHOUT ROWID;
CREATE TABLE docsync_foreign_table (id INTEGER PRIMARY KEY, wire TEXT NOT NULL, kind INTEGER NOT NULL, keys TEXT NOT NULL, UNIQUE (wire, kind, keys));
CREATE TABLE docsync_foreign_column (tbl INTEGER, col INTEGER, wire TEXT NOT NULL, PRIMARY KEY (tbl, col)) WITHOUT ROWID;
CREATE TABLE docsync_foreign (tbl INTEGER, identity BLOB, content BLOB NOT NULL, PRIMARY KEY (tbl, identity)) WITHOUT ROWID;
CREATE TABLE docsync_lost (wire TEXT, col TEXT, PRIMARY KEY (wire, col)) WITHOUT ROWID;
CREATE TABLE docsync_client (id INTEGER PRIMARY KEY, client BLOB NOT NULL UNIQUE, number INTEGER NOT NULL DEFAULT 0, hash BLOB);
CREATE TABLE docsync_outbox (client INTEGER, number INTEGER, hash BLOB NOT NULL, size INTEGER NOT NULL, changes INTEGER NOT NULL, published INTEGER NOT NULL, bytes BLOB NOT NULL, PRIMARY KEY (client, number));
CREATE TABLE docsync_inbox (client BLOB, number INTEGER, hash BLOB, bytes BLOB, PRIMARY KEY (client, number));
CREATE TABLE docsync_history (seq INTEGER PRIMARY KEY, client INTEGER NOT NULL, number INTEGER NOT NULL, hash BLOB NOT NULL, changes INTEGER NOT NULL, size INTEGER NOT NULL, at INTEGER NOT NULL);
CREATE TABLE docsync_record (key TEXT PRIMARY KEY, value BLOB) WITHOUT ROWID;
CREATE TABLE docsync_kept (tbl INTEGER, identity BLOB, reason TEXT NOT NULL, moved BLOB, cells BLOB NOT NULL, PRIMARY KEY (tbl, identity)) WITHOUT ROWID;
CREATE TABLE docsync_kept_reference (parent INTEGER, columns TEXT, key BLOB, tbl INTEGER, identity BLOB, PRIMARY KEY (parent, columns, key, tbl, identity)) WITHOUT ROWID;
CREATE INDEX docsync_kept_reference_row ON docsync_kept_reference (tbl, identity);
CREATE INDEX docsync_kept_rescued ON docsync_kept (tbl) WHERE reason = 'rescued';
CREATE TABLE docsync_claim (tbl INTEGER, ix INTEGER, key BLOB, identity BLOB, PRIMARY KEY (tbl, ix, key, identity)) WITHOUT ROWID;
CREATE INDEX docsync_claim_row ON docsync_claim (tbl, identity);
CREATE TABLE docsync_range (client INTEGER, last INTEGER, first INTEGER NOT NULL, least INTEGER NOT NULL, greatest INTEGER NOT NULL, mixed INTEGER NOT NULL DEFAULT 0, PRIMARY KEY (client, last)) WITHOUT ROWID;
CREATE TABLE docsync_base (tbl INTEGER, identity BLOB, col INTEGER, value BLOB NOT NULL, PRIMARY KEY (tbl, identity, col)) WITHOUT ROWID;
CREATE TABLE docsync_conflict (number INTEGER PRIMARY KEY, at INTEGER NOT NULL, size INTEGER NOT NULL, status TEXT NOT NULL, kind TEXT NOT NULL, tbl INTEGER NOT NULL, identity BLOB NOT NULL, col INTEGER, rule TEXT NOT NULL, outcome TEXT NOT NULL, local_time INTEGER, local_client INTEGER, remote_time INTEGER, remote_client INTEGER, message TEXT, key BLOB, base BLOB, local BLOB, remote BLOB);
CREATE INDEX docsync_conflict_row ON docsync_conflict (tbl, identity);
CREATE INDEX docsync_conflict_open ON docsync_conflict (status) WHERE status = 'open';
CREATE TABLE docsync_command (seq INTEGER PRIMARY KEY, content BLOB NOT NULL, number INTEGER UNIQUE, hash BLOB, bytes BLOB, published INTEGER NOT NULL DEFAULT 0);
CREATE TABLE docsync_event (id INTEGER PRIMARY KEY, client BLOB NOT NULL, number INTEGER NOT NULL, name TEXT NOT NULL, payload BLOB NOT NULL, UNIQUE (client, number));

-- Version 2
CREATE TABLE IF NOT EXISTS docsync_early (tbl INTEGER, identity BLOB, col INTEGER, since INTEGER, setter INTEGER, client INTEGER, sum BLOB NOT NULL, at INTEGER NOT NULL, PRIMARY KEY (tbl, identity, col, since, setter, client)) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS docsync_aside (wire TEXT, identity BLOB, col TEXT, value, PRIMARY KEY (wire, identity, col)) WITHOUT ROWID;

-- Version 3
CREATE TABLE IF NOT EXISTS docsync_plain (tbl INTEGER, key INTEGER, PRIMARY KEY (tbl, key)) WITHOUT ROWID;

-- Version 4
CREATE INDEX IF NOT EXISTS docsync_kept_borrowed ON docsync_kept (tbl) WHERE reason = 'borrowed';
