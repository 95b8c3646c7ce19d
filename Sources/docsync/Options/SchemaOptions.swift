import ArgumentParser
import SyncModel
import SyncStore

/// The options that choose what is synchronized and how rows are identified.
struct SchemaOptions: ParsableArguments {
  @Option(
    help: ArgumentHelp(
      "Do not synchronize a table, or a column of it.", valueName: "TABLE[.COLUMN]"))
  var exclude: [Exclusion] = []

  @Option(
    help: ArgumentHelp(
      "A table in which a framework records its migrations, if docsync does not know it by name.",
      valueName: "TABLE"))
  var schemaTable: [TableName] = []

  @Option(
    help: ArgumentHelp(
      "How to match rows: primaryKey (same key, same row), surrogate (random row identifiers, the default for INTEGER PRIMARY KEY), or columns.",
      valueName: "TABLE=HOW"))
  var identity: [IdentityChoice] = []

  @Option(
    help: ArgumentHelp(
      "A column that refers to a table without a declared foreign key.",
      valueName: "TABLE.COLUMN=TABLE"))
  var reference: [Reference] = []

  @Option(
    help: ArgumentHelp(
      "A column, or all columns of a table, with plain numbers that only look like references.",
      valueName: "TABLE[.COLUMN]"))
  var noReference: [Exclusion] = []

  @Option(
    help: ArgumentHelp(
      "How concurrent changes merge: editWins, wholeRow or keepBoth for a table, counter for a "
        + "column.",
      valueName: "TABLE[.COLUMN]=TYPE"))
  var merge: [MergeChoice] = []

  @Option(
    name: .customLong("no-stand-in"),
    help: ArgumentHelp(
      "If a row of this table loses a unique value, rows that refer to it are hidden with "
        + "it, instead of being shown with the row that has the value.",
      valueName: "TABLE"))
  var noStandIn: [TableName] = []

  /// The value of `--schema-table` and `--no-stand-in`.
  struct TableName: ExpressibleByArgument, Sendable {
    var name: SQLName

    init?(argument: String) {
      var rest = Substring(argument)
      guard let name = rest.takeName(), rest.isEmpty else { return nil }
      self.name = name
    }
  }

  /// `TABLE=TYPE` or `TABLE.COLUMN=TYPE`.
  struct MergeChoice: ExpressibleByArgument, Sendable {
    enum MergeType: Sendable {
      case table(TableMergeType)
      case column(SQLName, ColumnMergeType)
    }

    var table: SQLName
    var type: MergeType

    init?(argument: String) {
      var rest = Substring(argument)
      guard let table = rest.takeName() else { return nil }
      self.table = table
      if rest.take(".") {
        guard let column = rest.takeName(), rest.take("="),
          let type = ColumnMergeType(rawValue: String(rest))
        else { return nil }
        self.type = .column(column, type)
      } else {
        guard rest.take("="), let type = TableMergeType(rawValue: String(rest)) else { return nil }
        self.type = .table(type)
      }
    }
  }

  /// `TABLE` or `TABLE.COLUMN`.
  struct Exclusion: ExpressibleByArgument, Sendable {
    var name: QualifiedName

    init?(argument: String) {
      guard let name = QualifiedName(argument) else { return nil }
      self.name = name
    }
  }

  /// `TABLE=primaryKey`, `TABLE=surrogate` or `TABLE=COLUMN,COLUMN`. In quotes, `primaryKey` and
  /// `surrogate` are names of columns.
  struct IdentityChoice: ExpressibleByArgument, Sendable {
    var table: SQLName
    var identity: StoreConfiguration.Identity

    init?(argument: String) {
      var rest = Substring(argument)
      guard let table = rest.takeName(), rest.take("=") else { return nil }
      self.table = table
      switch rest {
      case "primaryKey": identity = .primaryKey
      case "surrogate": identity = .surrogate
      default:
        var columns: [SQLName] = []
        repeat {
          guard let column = rest.takeName() else { return nil }
          columns.append(column)
        } while rest.take(",")
        guard rest.isEmpty else { return nil }
        identity = .columns(columns)
      }
    }
  }

  /// `TABLE.COLUMN=TABLE`.
  struct Reference: ExpressibleByArgument, Sendable {
    var table: SQLName
    var column: SQLName
    var parent: SQLName

    init?(argument: String) {
      var rest = Substring(argument)
      guard let table = rest.takeName(), rest.take("."), let column = rest.takeName(),
        rest.take("="), let parent = rest.takeName(), rest.isEmpty
      else { return nil }
      self.table = table
      self.column = column
      self.parent = parent
    }
  }

  /// Returns the likely references about which the options do not decide.
  func undecided(_ likely: [StorePlan.LikelyReference]) -> [StorePlan.LikelyReference] {
    likely.filter { reference in
      !noReference.contains {
        $0.name.table.isSame(as: reference.table)
          && ($0.name.column.map { $0.isSame(as: reference.column) } ?? true)
      }
    }
  }

  /// The configuration of the store.
  var configuration: StoreConfiguration {
    var configuration = StoreConfiguration()
    for exclusion in exclude {
      if let column = exclusion.name.column {
        configuration.excludedColumns[exclusion.name.table, default: []].insert(column)
      } else {
        configuration.excludedTables.insert(exclusion.name.table)
      }
    }
    for choice in identity { configuration.identities[choice.table] = choice.identity }
    for reference in reference {
      configuration.references[reference.table, default: [:]][reference.column] = reference.parent
    }
    configuration.schemaTables = Set(schemaTable.map(\.name))
    configuration.tablesWithoutStandIns = Set(noStandIn.map(\.name))
    for choice in merge {
      switch choice.type {
      case .table(let type): configuration.tableMergeTypes[choice.table] = type
      case .column(let column, let type):
        configuration.columnMergeTypes[choice.table, default: [:]][column] = type
      }
    }
    return configuration
  }
}
