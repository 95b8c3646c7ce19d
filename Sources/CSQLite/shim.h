#ifndef DOCUMENTSYNC_CSQLITE_H
#define DOCUMENTSYNC_CSQLITE_H

// The session extension is declared only where these are defined. The
// benchmark compares with it; the product does not use it.
#ifndef SQLITE_ENABLE_SESSION
#define SQLITE_ENABLE_SESSION 1
#endif
#ifndef SQLITE_ENABLE_PREUPDATE_HOOK
#define SQLITE_ENABLE_PREUPDATE_HOOK 1
#endif
#include <sqlite3.h>

// sqlite3_db_config is variadic, which Swift cannot call.

static inline int csqlite_set_triggers_enabled(sqlite3 *db, int enabled) {
  return sqlite3_db_config(db, SQLITE_DBCONFIG_ENABLE_TRIGGER, enabled, (int *)0);
}

static inline int csqlite_set_defensive(sqlite3 *db, int defensive) {
  return sqlite3_db_config(db, SQLITE_DBCONFIG_DEFENSIVE, defensive, (int *)0);
}

// The methods of an open file are pointers, which Swift can call only by
// forcing them. Both functions return a code of SQLite.

static inline sqlite3_file *csqlite_file(sqlite3 *db) {
  sqlite3_file *file = 0;
  sqlite3_file_control(db, "main", SQLITE_FCNTL_FILE_POINTER, &file);
  return file && file->pMethods ? file : 0;
}

static inline int csqlite_file_size(sqlite3 *db, sqlite3_int64 *size) {
  sqlite3_file *file = csqlite_file(db);
  return file ? file->pMethods->xFileSize(file, size) : SQLITE_CANTOPEN;
}

static inline int csqlite_file_read(sqlite3 *db, void *bytes, int count, sqlite3_int64 offset) {
  sqlite3_file *file = csqlite_file(db);
  return file ? file->pMethods->xRead(file, bytes, count, offset) : SQLITE_CANTOPEN;
}

// sqlite3_config is variadic, too. What it sets holds for the whole process,
// and only before SQLite is used.

static inline int csqlite_disable_memory_statistics(void) {
  return sqlite3_config(SQLITE_CONFIG_MEMSTATUS, 0);
}

#endif
