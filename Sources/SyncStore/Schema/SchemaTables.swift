import GRDB
import SyncModel

/// The tables in which frameworks record their migrations.
///
/// If the rows of such a table were synchronized, a device that has an earlier version of the
/// application would receive the record of a migration, without the change of the schema, and would
/// never make that change itself.
enum SchemaTables {
  struct Known {
    var table: SQLName
    /// Columns that the table must have, so that a table of the user with the same name counts as
    /// such.
    var columns: [SQLName]

    init(_ table: SQLName, _ columns: SQLName...) {
      (self.table, self.columns) = (table, columns)
    }
  }

  /// The tables, with the frameworks that create them. `Documentation/Schemas.md` lists them.
  static let known = [
    Known("grdb_migrations", "identifier"),  // GRDB
    Known("schema_migrations", "version"),  // Rails, Ecto, golang-migrate
    Known("ar_internal_metadata", "key", "value"),  // Rails
    Known("django_migrations", "app", "name"),  // Django
    Known("alembic_version", "version_num"),  // Alembic
    Known("room_master_table", "identity_hash"),  // Room
    Known("android_metadata", "locale"),  // Android
    Known("_sqlx_migrations", "version", "checksum"),  // SQLx
    Known("__EFMigrationsHistory", "MigrationId"),  // Entity Framework Core
    Known("__EFMigrationsLock", "Timestamp"),  // Entity Framework Core
    Known("knex_migrations", "name", "batch"),  // Knex
    Known("knex_migrations_lock", "is_locked"),  // Knex
    Known("flyway_schema_history", "installed_rank"),  // Flyway
    Known("_prisma_migrations", "migration_name"),  // Prisma
    Known("__drizzle_migrations", "hash"),  // Drizzle
    Known("kysely_migration", "name"),  // Kysely
    Known("kysely_migration_lock", "is_locked"),  // Kysely
    Known("SequelizeMeta", "name"),  // Sequelize
    Known("migrations", "migration", "batch"),  // Laravel
    Known("migrations", "timestamp", "name"),  // TypeORM
    Known("doctrine_migration_versions", "version"),  // Doctrine
    Known("phinxlog", "version"),  // Phinx
    Known("goose_db_version", "version_id"),  // goose
    Known("__diesel_schema_migrations", "version"),  // Diesel
    Known("refinery_schema_history", "version"),  // Refinery
    Known("DATABASECHANGELOG", "MD5SUM"),  // Liquibase
    Known("DATABASECHANGELOGLOCK", "LOCKED"),  // Liquibase
    Known("_fluent_migrations", "name", "batch"),  // Fluent
    Known("Z_METADATA", "Z_PLIST"),  // Core Data
    Known("Z_MODELCACHE", "Z_CONTENT"),  // Core Data
  ]

  /// Returns whether a table records migrations.
  static func include(
    _ name: SQLName, _ configuration: StoreConfiguration, _ database: Database
  ) throws -> Bool {
    if configuration.schemaTables.contains(where: { $0.isSame(as: name) }) { return true }
    let candidates = known.filter { $0.table.isSame(as: name) }
    guard !candidates.isEmpty else { return false }
    let columns = try database.columns(in: name.text).map { SQLName($0.name).folded }
    return candidates.contains { candidate in
      candidate.columns.allSatisfy { columns.contains($0.folded) }
    }
  }
}
