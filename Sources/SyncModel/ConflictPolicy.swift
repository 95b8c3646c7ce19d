/// How a device decides a conflict between its own unpublished change and a concurrent one.
///
/// Each device has its own policies. Only the device that has not yet published its change when the
/// other change arrives applies one. Its decision is an ordinary new change, which all devices take
/// over.
public enum ConflictPolicy: Hashable, Sendable {
  /// The later stamp wins, as without a policy.
  case latestWins
  /// The change of this device wins.
  case localWins
  /// The change that arrived wins.
  case remoteWins
  /// The user decides; until then the later stamp wins.
  case ask
  /// The function of this name decides: one of the application, or one of ``mergeText``, ``mergeJSON``,
  /// ``max``, ``min`` and ``unionOfLines``.
  case resolve(String)

  /// Whether the policy may need the value before both changes.
  public var needsBase: Bool { self != .latestWins }
}

/// Policies with functions that are part of the library. If the application has a function of the same name,
/// that one decides.
extension ConflictPolicy {
  /// Merges texts by lines, and lines that both devices changed by words. If both changed the same words, both
  /// lines stay.
  public static let mergeText = Self(.mergeText)
  /// Merges objects in JSON by member.
  public static let mergeJSON = Self(.mergeJSON)
  /// The greater value wins, in the order of SQLite: NULL, numbers, text, blobs.
  public static let max = Self(.max)
  /// The lesser value wins, in the order of SQLite.
  public static let min = Self(.min)
  /// The lines of both texts stay, without those of the text before both changes that one device removed.
  public static let unionOfLines = Self(.unionOfLines)

  private init(_ function: ShippedFunction) { self = .resolve(function.rawValue) }

  /// The function of the library by which the policy decides if the application has none of that name.
  package var shippedFunction: ShippedFunction? {
    if case .resolve(let name) = self { ShippedFunction(rawValue: name) } else { nil }
  }
}

/// The text is `latestWins`, `localWins`, `remoteWins`, `ask` or
/// `resolve:NAME`.
extension ConflictPolicy: LosslessStringConvertible, Codable {
  /// Parses ``description``; `nil` for anything else.
  public init?(_ text: String) {
    switch text {
    case "latestWins": self = .latestWins
    case "localWins": self = .localWins
    case "remoteWins": self = .remoteWins
    case "ask": self = .ask
    default:
      guard text.hasPrefix("resolve:"), text.count > 8 else { return nil }
      self = .resolve(String(text.dropFirst(8)))
    }
  }

  /// The policy as text.
  public var description: String {
    switch self {
    case .latestWins: "latestWins"
    case .localWins: "localWins"
    case .remoteWins: "remoteWins"
    case .ask: "ask"
    case .resolve(let name): "resolve:\(name)"
    }
  }

  /// Reads the text.
  public init(from decoder: any Decoder) throws {
    let container = try decoder.singleValueContainer()
    let text = try container.decode(String.self)
    guard let policy = ConflictPolicy(text) else {
      throw DecodingError.dataCorruptedError(
        in: container, debugDescription: "\(text) is not a policy")
    }
    self = policy
  }

  /// Writes the text.
  public func encode(to encoder: any Encoder) throws {
    var container = encoder.singleValueContainer()
    try container.encode(description)
  }
}

/// The policies of a device for the document, tables and columns. The most specific one counts.
///
/// Names are compared without regard to the case of ASCII letters, as SQLite does.
public struct SyncPolicies: Hashable, Sendable, Codable {
  /// For all tables and columns without a policy of their own.
  public var document = ConflictPolicy.latestWins
  /// For tables, by name. The existence of rows follows the policy of their table.
  public var tables: [SQLName: ConflictPolicy] = [:]
  /// For columns, by table and column.
  public var columns: [SQLName: [SQLName: ConflictPolicy]] = [:]

  /// Creates policies by which the later stamp always wins.
  public init() {}

  /// Returns the policy for a column, or, if `column` is `nil`, for the existence of rows.
  public func policy(table: SQLName, column: SQLName?) -> ConflictPolicy {
    if let column, let policies = Self.find(columns, table),
      let policy = Self.find(policies, column)
    {
      return policy
    }
    return Self.find(tables, table) ?? document
  }

  /// Sets the policy of the document, a table or a column; `nil` removes it.
  public mutating func set(
    _ policy: ConflictPolicy?, table: SQLName? = nil, column: SQLName? = nil
  ) {
    guard let table else {
      document = policy ?? .latestWins
      return
    }
    guard let column else {
      tables = tables.filter { !$0.key.isSame(as: table) }
      tables[table] = policy
      return
    }
    let name = columns.keys.first { $0.isSame(as: table) } ?? table
    var policies = (columns[name] ?? [:]).filter { !$0.key.isSame(as: column) }
    policies[column] = policy
    columns[name] = policies.isEmpty ? nil : policies
  }

  private static func find<Element>(_ values: [SQLName: Element], _ name: SQLName) -> Element? {
    values[name] ?? values.first { $0.key.isSame(as: name) }?.value
  }
}

extension Conflict {
  /// The input of a function that decides a conflict.
  public struct Values: Hashable, Sendable {
    /// The table that has the column.
    public var table: SQLName
    /// The column whose values conflict.
    public var column: SQLName
    /// The values of the row's key on this device.
    public var key: [Conflict.Cell]
    /// The value before both changes; `nil` if it is not known.
    public var base: Value?
    /// The value of this device.
    public var local: Value
    /// The value that arrived.
    public var remote: Value

    /// Creates the input from its parts.
    package init(
      table: SQLName, column: SQLName, key: [Conflict.Cell], base: Value?, local: Value,
      remote: Value
    ) {
      self.table = table
      self.column = column
      self.key = key
      self.base = base
      self.local = local
      self.remote = remote
    }
  }
}

/// A function that decides between two values. The merge calls it within its transaction, so it
/// must not use the store.
package typealias ConflictResolver = @Sendable (Conflict.Values) throws -> Value

/// A function that decides for the policy of the given name; returns `nil` if it does not know the
/// name. The rules of ``ConflictResolver`` apply.
package typealias NamedConflictResolver =
  @Sendable (_ name: String, Conflict.Values) throws -> Value?
