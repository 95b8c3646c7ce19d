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

// sqlite3_config is variadic, too. What it sets holds for the whole process,
// and only before SQLite is used.

static inline int csqlite_disable_memory_statistics(void) {
  return sqlite3_config(SQLITE_CONFIG_MEMSTATUS, 0);
}

#endif
