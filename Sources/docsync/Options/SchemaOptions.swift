import ArgumentParser
import SyncModel
import SyncStore

/// The options that choose what is synchronized, and how rows are told apart.
struct SchemaOptions: ParsableArguments {
  @Option(
    help: ArgumentHelp(
      "Leave a table, or a column of it, on this device.", valueName: "TABLE[.COLUMN]"))
  var exclude: [Exclusion] = []

  @Option(
    help: ArgumentHelp(
      "How the rows of a table are told apart: primaryKey, surrogate, or columns.",
      valueName: "TABLE=HOW"))
  var identity: [IdentityChoice] = []

  @Option(
    help: ArgumentHelp(
      "A column that refers to a table without a declared foreign key.",
      valueName: "TABLE.COLUMN=TABLE"))
  var reference: [Reference] = []

  @Option(
    help: ArgumentHelp(
      "A column, or all of a table, that holds plain numbers and no references, though it looks "
        + "otherwise.",
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
      "A table in which nothing stands in for a row that loses a unique value: what refers to "
        + "such a row is parked with it.",
      valueName: "TABLE"))
  var noStandIn: [TableName] = []

  /// The value of `--no-stand-in`.
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

  /// `TABLE=primaryKey`, `TABLE=surrogate` or `TABLE=COLUMN,COLUMN`. In quotes,
  /// the two words are names of columns.
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

  /// The columns that look like references and that the options do not
  /// decide.
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
