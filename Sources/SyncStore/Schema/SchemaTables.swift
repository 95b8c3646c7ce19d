import GRDB
import SyncModel

/// The tables in which frameworks record their migrations.
///
/// If the rows of such a table were synchronized, a device that has an earlier version of the
/// application would receive the record of a migration, without the change of the schema, and would
/// never make that change itself.
enum SchemaTables {
  struct Known {
    /// What the rows of a table are.
    enum Content: Equatable {
      /// One row for each migration that has run.
      case migrations
      /// The present version, or settings.
      case state
      /// A lock that a running migration holds.
      case lock(release: String)
    }

    var table: SQLName
    /// Columns that the table must have, so that a user's own table with this name is synchronized.
    var columns: [SQLName]
    /// The columns that name a migration or the present version. Others, such as the batch in which a
    /// migration ran, differ between databases of the same version. Empty if the rows name neither.
    var naming: [SQLName]
    var content: Content
    /// Further columns, if the table must have no others: its name is a common word.
    var onlyBeside: [SQLName]?

    init(
      _ table: SQLName, _ columns: SQLName..., naming: [SQLName]? = nil,
      content: Content = .migrations, onlyBeside: [SQLName]? = nil
    ) {
      (self.table, self.columns, self.content) = (table, columns, content)
      self.naming = naming ?? (content == .migrations ? columns : [])
      self.onlyBeside = onlyBeside
    }

    fileprivate func fits(_ present: [SQLName]) -> Bool {
      let present = Set(present.map(\.folded))
      let wanted = Set(columns.map(\.folded))
      guard let onlyBeside else { return wanted.isSubset(of: present) }
      return wanted.union(onlyBeside.map(\.folded)) == present
    }
  }

  /// The tables, with the frameworks that create them. `Documentation/Schemas.md` lists them.
  static let known = [
    Known("grdb_migrations", "identifier"),  // GRDB
    Known("schema_migrations", "version"),  // Rails, Ecto, golang-migrate
    Known("ar_internal_metadata", "key", "value", content: .state),  // Rails
    Known("django_migrations", "app", "name"),  // Django
    Known("alembic_version", "version_num", naming: ["version_num"], content: .state),  // Alembic
    Known(
      "room_master_table", "identity_hash", naming: ["identity_hash"], content: .state),  // Room
    Known("android_metadata", "locale", content: .state),  // Android
    Known("_sqlx_migrations", "version", "checksum", naming: ["version"]),  // SQLx
    Known("__EFMigrationsHistory", "MigrationId"),  // Entity Framework Core
    Known(
      "__EFMigrationsLock", "Timestamp",
      content: .lock(release: "DELETE FROM __EFMigrationsLock")),  // Entity Framework Core
    Known("knex_migrations", "name", "batch", naming: ["name"]),  // Knex
    Known(
      "knex_migrations_lock", "is_locked",
      content: .lock(release: "UPDATE knex_migrations_lock SET is_locked = 0")),  // Knex
    Known("flyway_schema_history", "installed_rank", naming: ["script"]),  // Flyway
    Known("_prisma_migrations", "migration_name"),  // Prisma
    Known("__drizzle_migrations", "hash"),  // Drizzle
    Known("kysely_migration", "name"),  // Kysely
    Known(
      "kysely_migration_lock", "is_locked",
      content: .lock(release: "UPDATE kysely_migration_lock SET is_locked = 0")),  // Kysely
    Known("SequelizeMeta", "name"),  // Sequelize
    Known(
      "migrations", "migration", "batch", naming: ["migration"], onlyBeside: ["id"]),  // Laravel
    Known("migrations", "timestamp", "name", naming: ["name"], onlyBeside: ["id"]),  // TypeORM
    Known("doctrine_migration_versions", "version"),  // Doctrine
    Known("phinxlog", "version"),  // Phinx
    Known("goose_db_version", "version_id"),  // goose
    Known("__diesel_schema_migrations", "version"),  // Diesel
    Known("refinery_schema_history", "version"),  // Refinery
    Known("DATABASECHANGELOG", "ID", "AUTHOR", "FILENAME"),  // Liquibase
    Known(
      "DATABASECHANGELOGLOCK", "LOCKED",
      content: .lock(release: "UPDATE DATABASECHANGELOGLOCK SET LOCKED = 0")),  // Liquibase
    Known("_fluent_migrations", "name", "batch", naming: ["name"]),  // Fluent
    Known("aerich", "version", "app", "content", naming: ["version", "app"]),  // Aerich
    Known("_yoyo_migration", "migration_hash", "migration_id", naming: ["migration_id"]),  // yoyo
    Known("_yoyo_log", "migration_hash", "operation", content: .state),  // yoyo
    Known("_yoyo_version", "version", "installed_at_utc", content: .state),  // yoyo
    Known("yoyo_lock", "locked", "pid", content: .lock(release: "DELETE FROM yoyo_lock")),  // yoyo
    Known(
      "migration", "name", "app_name", "ran_on", naming: ["name", "app_name"],
      onlyBeside: ["id"]),  // Piccolo
    Known(
      "migratehistory", "name", "migrated_at", naming: ["name"],
      onlyBeside: ["id"]),  // peewee-migrate
    Known(
      "schema_migration", "name", "applied", naming: ["name"], onlyBeside: ["id"]),  // peewee
    Known("_sqlite_migrations", "migration_set", "name"),  // sqlite-utils
    Known("tortoise_migrations", "app", "name"),  // Tortoise ORM
    Known("seaql_migrations", "version", "applied_at", naming: ["version"]),  // SeaORM
    Known("schema_migrations", "filename"),  // Sequel
    Known("gorp_migrations", "id", "applied_at", naming: ["id"]),  // sql-migrate
    Known("mikro_orm_migrations", "name", "executed_at", naming: ["name"]),  // MikroORM
    Known("bun_migrations", "name", "group_id", naming: ["name"]),  // Bun
    Known("adonis_schema", "name", "batch", naming: ["name"]),  // AdonisJS
    Known("VersionInfo", "Version", "AppliedOn", naming: ["Version"]),  // FluentMigrator
    Known("SchemaVersions", "ScriptName", "Applied", naming: ["ScriptName"]),  // DbUp
    Known("Z_METADATA", "Z_PLIST", content: .state),  // Core Data
    Known("Z_MODELCACHE", "Z_CONTENT", content: .state),  // Core Data
  ]

  /// Returns whether a table records migrations.
  static func include(
    _ name: SQLName, _ configuration: StoreConfiguration, _ database: Database
  ) throws -> Bool {
    if configuration.schemaTables.contains(where: { $0.isSame(as: name) }) { return true }
    return try entry(of: name, database) != nil
  }

  /// Returns the known table that a table is; `nil` if it is none.
  static func entry(of name: SQLName, _ database: Database) throws -> Known? {
    let candidates = known.filter { $0.table.isSame(as: name) }
    guard !candidates.isEmpty else { return nil }
    let columns = try Row.fetchAll(
      database, sql: "PRAGMA main.table_xinfo(\(quoted(name)))"
    ).map { $0["name"] as SQLName }
    return candidates.first { $0.fits(columns) }
  }
}
