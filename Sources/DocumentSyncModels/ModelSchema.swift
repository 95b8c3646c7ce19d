import DocumentSync

/// The types of an application's records, with what is to happen when they are merged.
///
/// A ``ModelMirror`` makes its tables from the schema: a table for each type, a column for each field. An app
/// may add types and fields in later versions. Devices with an earlier version keep what they do not know
/// yet, and send it on. A type or a field that an app leaves out stays in the mirror, and is not delivered.
public struct ModelSchema: Hashable, Sendable {
  /// The form of some records: a table of the mirror.
  public struct RecordType: Hashable, Sendable {
    /// The name of the type, and of its table: ASCII letters, digits and `_`, a letter first.
    public var name: String
    /// The fields, each with a name of its own.
    public var fields: [Field]
    /// How concurrent changes of a record merge, on all devices. Fixed when the document is created; a type
    /// that is added later has ``/DocumentSync/TableMergeType/latestWins``.
    public var merging: TableMergeType
    /// How this device decides a conflict in a field without a policy of its own; `nil` leaves that to the
    /// policies of the manager, by default ``/DocumentSync/ConflictPolicy/latestWins``.
    public var policy: ConflictPolicy?

    /// Creates a type.
    public init(
      _ name: String, fields: [Field], merging: TableMergeType = .latestWins,
      policy: ConflictPolicy? = nil
    ) {
      self.name = name
      self.fields = fields
      self.merging = merging
      self.policy = policy
    }
  }

  /// One field of a type.
  public struct Field: Hashable, Sendable {
    /// The kind of a field's values. Every field may be null.
    public enum Kind: Hashable, Sendable {
      /// ``ModelValue/integer(_:)``.
      case integer
      /// ``ModelValue/real(_:)``.
      case real
      /// ``ModelValue/text(_:)``.
      case text
      /// ``ModelValue/data(_:)``.
      case data
      /// ``ModelValue/reference(_:)`` to a record of a type.
      case reference(to: String, onDelete: DeletionRule)
    }

    /// What a deletion of the record to which a field refers does.
    public enum DeletionRule: String, Hashable, Sendable {
      /// The record with the reference is deleted as well.
      case cascade
      /// The field becomes null.
      case setNull
      /// The record is not deleted while another one refers to it. If one device deletes it while
      /// another one makes such a reference, it comes back.
      case restrict
    }

    /// The name of the field, and of its column: as for ``RecordType/name``, and not `identity`.
    public var name: String
    /// The kind of its values.
    public var kind: Kind
    /// Whether no two records of the type have the same value. Null is no value.
    public var isUnique: Bool
    /// How concurrent changes of the field merge, on all devices. Fixed when the document is created; a field
    /// that is added later has ``/DocumentSync/ColumnMergeType/latestWins``.
    public var merging: ColumnMergeType
    /// How this device decides a conflict in the field; `nil` leaves that to the policies of the manager, by
    /// default the policy of the type.
    public var policy: ConflictPolicy?

    /// Creates a field.
    public init(
      _ name: String, _ kind: Kind, isUnique: Bool = false, merging: ColumnMergeType = .latestWins,
      policy: ConflictPolicy? = nil
    ) {
      self.name = name
      self.kind = kind
      self.isUnique = isUnique
      self.merging = merging
      self.policy = policy
    }
  }

  /// The types, each with a name of its own.
  public var types: [RecordType]

  /// Creates a schema. A mirror checks it when it is opened.
  public init(_ types: [RecordType]) { self.types = types }

  /// Returns the type of a name.
  func type(_ name: String) -> RecordType? {
    // Texts may be equal as Swift compares them, and differ in their bytes.
    types.first { $0.name.utf8.elementsEqual(name.utf8) }
  }
}

extension ModelSchema {
  /// How the tables are synchronized.
  var configuration: StoreConfiguration {
    var configuration = StoreConfiguration()
    configuration.excludedTables = Set(MirrorTables.local.map { SQLName($0) })
    for type in types {
      let table = SQLName(type.name)
      if type.merging != .latestWins { configuration.tableMergeTypes[table] = type.merging }
      for field in type.fields where field.merging != .latestWins {
        configuration.columnMergeTypes[table, default: [:]][SQLName(field.name)] = field.merging
      }
    }
    return configuration
  }

  /// Throws `schemaUnsuitable` if a merge type is another one than in the document.
  func check(against document: StoreConfiguration) throws {
    for type in types {
      let table = document.tableMergeTypes.first { $0.key.isSame(as: SQLName(type.name)) }
      try Self.check(
        type.merging, table?.value ?? .latestWins, of: "type “\(type.name)”")
      let columns = document.columnMergeTypes.first { $0.key.isSame(as: SQLName(type.name)) }
      for field in type.fields {
        let column = columns?.value.first { $0.key.isSame(as: SQLName(field.name)) }
        try Self.check(
          field.merging, column?.value ?? .latestWins,
          of: "field “\(field.name)” of “\(type.name)”")
      }
    }
  }

  private static func check<MergeType: Equatable>(
    _ declared: MergeType, _ document: MergeType, of what: String
  ) throws {
    guard declared != document else { return }
    throw unsuitable(
      "The \(what) merges by “\(document)” in the document, not by “\(declared)”.",
      "Declare “\(document)”. Merge types are fixed when the document is created, and what is added later "
        + "has “latestWins”.")
  }

  /// Sets the policies of this device.
  func set(_ policies: inout SyncPolicies) {
    for type in types {
      // What the app has set otherwise stays.
      if let policy = type.policy { policies.set(policy, table: SQLName(type.name)) }
      for field in type.fields {
        guard let policy = field.policy else { continue }
        policies.set(policy, table: SQLName(type.name), column: SQLName(field.name))
      }
    }
  }

  /// Throws `schemaUnsuitable` unless tables can be made of it.
  func check() throws {
    var seen: Set<String> = []
    for type in types {
      try Self.checkName(type.name, of: "record type")
      let isOurs = ["docsync_", "sqlite_", "mirror_"].contains {
        type.name.lowercased().hasPrefix($0)
      }
      guard !isOurs, seen.insert(type.name.lowercased()).inserted else {
        throw Self.unsuitable(
          "The name “\(type.name)” of a record type is taken.",
          "Give each type a name of its own that does not begin with “docsync_”, “sqlite_” or "
            + "“mirror_”. Case does not count.")
      }
      var fields: Set = ["identity"]
      for field in type.fields {
        try Self.checkName(field.name, of: "field of “\(type.name)”")
        guard fields.insert(field.name.lowercased()).inserted else {
          throw Self.unsuitable(
            "The name “\(field.name)” of a field of “\(type.name)” is taken.",
            "Give each field a name of its own, and none the name “identity”. Case does not count.")
        }
        if case .reference(let parent, _) = field.kind, self.type(parent) == nil {
          throw Self.unsuitable(
            "The field “\(field.name)” of “\(type.name)” refers to “\(parent)”, which is no type of "
              + "the schema.", "Declare that type, or name another one.")
        }
        if field.merging == .counter, field.kind != .integer, field.kind != .real {
          throw Self.unsuitable(
            "The field “\(field.name)” of “\(type.name)” cannot be a counter.",
            "Only integers and reals are counted.")
        }
      }
    }
  }

  private static func checkName(_ name: String, of what: String) throws {
    let isSuitable =
      name.utf8.count <= 60
      && name.utf8.enumerated().allSatisfy { position, byte in
        switch byte {
        case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"): true
        case UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "_"): position > 0
        default: false
        }
      }
    guard !name.isEmpty, isSuitable else {
      throw unsuitable(
        "“\(name)” cannot be the name of a \(what).",
        "Use ASCII letters, digits and “_”, a letter first, at most 60.")
    }
  }

  private static func unsuitable(_ message: String, _ remedy: String) -> SyncError {
    SyncError(
      .schemaUnsuitable, operation: "open the mirror", message: message, remedy: Remedy(remedy))
  }
}
