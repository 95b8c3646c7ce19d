import Foundation
import SyncModel

@testable import SyncStore

/// Reads the files of `Fixtures/Merge`, strictly: an unknown key, a case that
/// expects nothing, or a name that is there twice is an error.
struct MergeCaseReader {
  private var names: Set<String> = []

  static let directory = URL(fileURLWithPath: #filePath)
    .deletingLastPathComponent().deletingLastPathComponent().deletingLastPathComponent()
    .appending(path: "Fixtures/Merge")

  /// The cases of all files, in order of file name.
  static func all() throws -> [MergeCase] {
    var reader = MergeCaseReader()
    let names = try FileManager.default.contentsOfDirectory(atPath: directory.path)
    return try names.filter { $0.hasSuffix(".json") }.sorted().flatMap { name in
      try reader.read(Data(contentsOf: directory.appending(path: name)), file: name)
    }
  }

  /// The cases of one file.
  mutating func read(_ data: Data, file: String) throws -> [MergeCase] {
    let document: JSON
    do {
      document = try JSONDecoder().decode(JSON.self, from: data)
    } catch {
      throw MergeCaseError(description: "\(file): \(error)")
    }
    var object = try JSONObject(document, at: file)
    _ = try object.text("about")
    let schema = try object.texts("schema") ?? []
    let cases = try object.array("cases") ?? []
    try object.finish()
    return try cases.map { item in
      let merged = try mergeCase(item, file: file, schema: schema)
      guard names.insert(merged.name).inserted else {
        throw MergeCaseError(description: "\(file): there are two cases “\(merged.name)”")
      }
      return merged
    }
  }

  private func mergeCase(_ json: JSON, file: String, schema: [String]) throws -> MergeCase {
    var object = try JSONObject(json, at: file)
    let name = try object.text("name")
    object.path = "\(file): \(name)"
    let expectation = try expectation(&object)
    guard !expectation.rows.isEmpty || !expectation.rowsOn.isEmpty else {
      throw object.error("says nothing of the rows that are expected")
    }
    let orders = try object.optionalText("orders")
    guard orders == nil || orders == "every" else { throw object.error("“orders” is \"every\"") }
    let path = object.path
    let result = MergeCase(
      name: name, why: try object.text("why"), file: file,
      schema: try object.texts("schema") ?? schema,
      configuration: try configuration(try object.value("configuration"), at: path),
      policies: try members(try object.value("policies"), at: path)
        .mapValues { try policies($0, at: path) },
      devices: try object.integer("devices") ?? 2,
      foreignKeys: try object.flag("foreignKeys") ?? true,
      steps: try (object.array("steps") ?? []).map { try step($0, at: path) },
      inEveryOrder: orders != nil, expectation: expectation)
    try object.finish()
    guard (1...4).contains(result.devices) else { throw object.error("has 1 to 4 devices") }
    return result
  }

  // MARK: - Steps

  private func step(_ json: JSON, at path: String) throws -> MergeCase.Step {
    var object = try JSONObject(json, at: path)
    let result: MergeCase.Step
    if let device = try object.optionalText("on") {
      result = .edit(
        on: device, at: try object.optionalText("at").map { try milliseconds($0, at: path) },
        sql: try object.texts("sql") ?? [], isCaptured: try object.flag("captured") ?? true)
    } else if let device = try object.optionalText("seal") {
      result = .seal(device)
    } else if let way = try object.optionalText("deliver") {
      let ends = way.split(separator: "→").map(String.init)
      guard ends.count == 2 else { throw object.error("a delivery is written \"A→B\"") }
      let numbers = try object.array("numbers")?.map { number in
        guard case .integer(let number) = number else {
          throw object.error("“numbers” are those of change sets")
        }
        return UInt64(number)
      }
      result = .deliver(from: ends[0], to: ends[1], numbers: numbers)
    } else if let devices = try object.optionalText("exchange") {
      guard devices == "all" else { throw object.error("“exchange” is \"all\"") }
      result = .exchange
    } else if let device = try object.optionalText("join") {
      result = .join(device, from: try object.text("from"))
    } else {
      result = .check(try object.text("check"), try expectation(&object))
    }
    try object.finish()
    return result
  }

  /// The day on which the cases take place; a time alone is on this day.
  static let day = "2026-06-01"
  /// What the clock of a device shows until a step says another time: 09:00.
  static let morning: Int64 = 1_780_304_400_000
  /// What the clocks of the stores show.
  static let noon: Int64 = 1_780_315_200_000

  private func milliseconds(_ text: String, at path: String) throws -> Int64 {
    var text = text.contains("-") ? text : "\(Self.day) \(text)"
    if text.split(separator: ":").count == 2 { text += ":00" }
    let format = Date.ISO8601FormatStyle(dateTimeSeparator: .space, timeZone: .gmt)
      .year().month().day().time(includingFractionalSeconds: false)
    do {
      return Int64(try format.parse(text).timeIntervalSince1970 * 1000)
    } catch {
      throw MergeCaseError(description: "\(path): “\(text)” is no time")
    }
  }

  // MARK: - Expectations

  private func expectation(_ object: inout JSONObject) throws -> MergeCase.Expectation {
    let path = object.path
    return MergeCase.Expectation(
      rows: try rows(try object.value("rows"), at: path),
      rowsOn: try members(try object.value("rowsOn"), at: path)
        .mapValues { try rows($0, at: path) },
      parked: try object.texts("parked"),
      conflicts: try object.array("conflicts")?.map { try conflict($0, at: path) },
      warnings: try object.texts("warnings"), waiting: try object.integer("waiting"))
  }

  private func members(_ json: JSON?, at path: String) throws -> [String: JSON] {
    guard let json else { return [:] }
    return try JSONObject(json, at: path).members
  }

  private func rows(_ json: JSON?, at path: String) throws -> [String: [[Value]]] {
    try members(json, at: path).mapValues { table in
      guard case .array(let rows) = table else {
        throw MergeCaseError(description: "\(path): rows are an array of arrays")
      }
      return try rows.map { row in
        guard case .array(let values) = row else {
          throw MergeCaseError(description: "\(path): a row is an array of values")
        }
        return try values.map { try value($0, at: path) }
      }
    }
  }

  private func conflict(_ json: JSON, at path: String) throws -> MergeCase.Conflict {
    var object = try JSONObject(json, at: path)
    let result = MergeCase.Conflict(
      kind: try object.text("kind"), row: try object.text("row"),
      column: try object.optionalText("column"),
      lost: try (object.array("lost") ?? []).map { try value($0, at: path) })
    try object.finish()
    return result
  }

  /// `{"real": 1}` and `{"blob": "00ff"}` are what JSON cannot say.
  private func value(_ json: JSON, at path: String) throws -> Value {
    switch json {
    case .null: return .null
    case .integer(let integer): return .integer(integer)
    case .real(let real): return .real(real)
    case .text(let text): return .text(text)
    case .flag, .array: throw MergeCaseError(description: "\(path): \(json) is no value")
    case .object:
      var object = try JSONObject(json, at: path)
      if let hex = try object.optionalText("blob") {
        try object.finish()
        let digits = hex.compactMap(\.hexDigitValue)
        return .blob(
          stride(from: 0, to: digits.count - 1, by: 2).map {
            UInt8(digits[$0] << 4 | digits[$0 + 1])
          })
      }
      let number = try object.value("real")
      try object.finish()
      switch number {
      case .integer(let integer): return .real(Double(integer))
      case .real(let real): return .real(real)
      default: throw object.error("a value is \"blob\" or \"real\"")
      }
    }
  }

  // MARK: - Configuration

  private func configuration(_ json: JSON?, at path: String) throws -> StoreConfiguration {
    var result = StoreConfiguration()
    guard let json else { return result }
    var object = try JSONObject(json, at: path)
    for (table, identity) in try members(try object.value("identities"), at: path) {
      switch identity {
      case .text("primaryKey"): result.identities[SQLName(table)] = .primaryKey
      case .text("surrogate"): result.identities[SQLName(table)] = .surrogate
      case .array(let columns):
        result.identities[SQLName(table)] = .columns(
          try columns.map { column in
            guard case .text(let column) = column else { throw object.error("a column is a text") }
            return SQLName(column)
          })
      default: throw object.error("an identity is primaryKey, surrogate or an array of columns")
      }
    }
    for name in try object.texts("excluded") ?? [] {
      let parts = name.split(separator: ".").map { SQLName($0) }
      if parts.count == 1 {
        result.excludedTables.insert(parts[0])
      } else {
        result.excludedColumns[parts[0], default: []].insert(parts[1])
      }
    }
    result.tablesWithoutStandIns = Set(
      (try object.texts("withoutStandIns") ?? []).map { SQLName($0) })
    for (name, type) in try members(try object.value("mergeTypes"), at: path) {
      try setMergeType(name, type, at: path, &result)
    }
    for (name, parent) in try members(try object.value("references"), at: path) {
      let parts = name.split(separator: ".").map { SQLName($0) }
      guard parts.count == 2, case .text(let parent) = parent else {
        throw object.error("a reference is \"table.column\": \"table\"")
      }
      result.references[parts[0], default: [:]][parts[1]] = SQLName(parent)
    }
    try object.finish()
    return result
  }

  /// The policies of a device by `*`, `table` or `table.column`.
  private func policies(_ json: JSON, at path: String) throws -> SyncPolicies {
    var result = SyncPolicies()
    for (name, policy) in try members(json, at: path) {
      guard case .text(let text) = policy, let policy = ConflictPolicy(text) else {
        throw MergeCaseError(description: "\(path): \(name) cannot have the policy \(policy)")
      }
      let parts = name.split(separator: ".").map { SQLName($0) }
      if name == "*" {
        result.document = policy
      } else {
        result.set(policy, table: parts[0], column: parts.count > 1 ? parts[1] : nil)
      }
    }
    return result
  }

  /// A merge type of `table` or `table.column`.
  private func setMergeType(
    _ name: String, _ type: JSON, at path: String, _ result: inout StoreConfiguration
  ) throws {
    let parts = name.split(separator: ".").map { SQLName($0) }
    if case .text(let type) = type {
      if parts.count == 1, let type = TableMergeType(rawValue: type) {
        result.tableMergeTypes[parts[0]] = type
        return
      }
      if parts.count == 2, let type = ColumnMergeType(rawValue: type) {
        result.columnMergeTypes[parts[0], default: [:]][parts[1]] = type
        return
      }
    }
    throw MergeCaseError(description: "\(path): \(name) cannot have the merge type \(type)")
  }
}
