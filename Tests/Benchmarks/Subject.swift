import ArgumentParser
import CSQLite
import Foundation

/// What is compared.
enum SubjectName: String, CaseIterable, Codable, ExpressibleByArgument {
  /// SQL without capture.
  case plain
  /// SQLite's session extension.
  case session
  /// This package.
  case documentSync = "documentsync"
}

/// Two devices that hold the same table of notes, and a way to bring the
/// changes of the one to the other.
protocol Subject: AnyObject {
  /// Creates both devices in an empty directory, with an empty table.
  init(directory: URL) throws
  /// Writes, exports, applies; gives what each cost. Checkpoints and reading
  /// from disk lie outside what is measured.
  func run(_ workload: Workload, of dataset: Dataset, round: Int) throws -> [Quantity: Double]
  /// Connections to the two devices.
  func open(_ device: Device) throws -> Database
}

extension SubjectName {
  /// The type that does it.
  var type: any Subject.Type {
    switch self {
    case .plain: PlainSubject.self
    case .session: SessionSubject.self
    case .documentSync: DocumentSyncSubject.self
    }
  }
}

extension Subject {
  /// Writes one device's part of a workload; gives the CPU seconds.
  func write(
    _ workload: Workload, by device: Device, of dataset: Dataset, to database: Database
  ) throws -> Double {
    try Measurement.of {
      try NotesTable.write(
        workload, by: device, of: dataset, to: database, batching: workload.batching)
    }.1.processor
  }

  /// The sizes at the end of a workload, with an empty WAL.
  func sizes() throws -> [Quantity: Double] {
    var sizes: [Quantity: Double] = [:]
    for device in Device.allCases {
      let database = try open(device)
      try database.checkpoint()
      sizes[device == .first ? .file : .secondFile] = try fileSize(of: database)
      sizes[device == .first ? .bookkeeping : .secondBookkeeping] = try Double(
        database.integer(
          """
          SELECT total(pgsize) FROM dbstat WHERE aggregate = TRUE AND name IN
            (SELECT name FROM sqlite_schema WHERE tbl_name LIKE 'docsync!_%' ESCAPE '!')
          """))
    }
    return sizes
  }

  /// The size of each bookkeeping table with its indexes, first device.
  func bookkeepingTables() throws -> [String: Int64] {
    let statement = try open(.first).prepare(
      """
      SELECT tbl_name, sum(pgsize) FROM dbstat JOIN sqlite_schema USING (name)
      WHERE aggregate = TRUE AND tbl_name LIKE 'docsync!_%' ESCAPE '!' GROUP BY tbl_name
      """)
    var sizes: [String: Int64] = [:]
    while try statement.step() {
      sizes[String(cString: sqlite3_column_text(statement.handle, 0))] =
        sqlite3_column_int64(statement.handle, 1)
    }
    return sizes
  }

  /// The length of a database in bytes.
  func fileSize(of database: Database) throws -> Double {
    try Double(database.integer("PRAGMA page_count") * database.integer("PRAGMA page_size"))
  }
}
