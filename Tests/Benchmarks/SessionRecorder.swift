import CSQLite
import Foundation

/// A session that is attached to the table of notes.
final class SessionRecorder {
  private let database: Database
  private let handle: OpaquePointer

  init(of database: Database) throws {
    self.database = database
    var created: OpaquePointer?
    try database.check(
      sqlite3session_create(database.handle, "main", &created), "create a session")
    guard let created else {
      throw SQLiteFailure(code: SQLITE_MISUSE, message: "no session", operation: "create a session")
    }
    handle = created
    try database.check(sqlite3session_attach(handle, "notes"), "attach a session")
  }

  deinit { sqlite3session_delete(handle) }

  /// Everything since the session began, with the old values.
  func changeset() throws -> SessionPayload { try payload(sqlite3session_changeset, "changeset") }

  /// Everything since the session began, without the old values.
  func patchset() throws -> SessionPayload { try payload(sqlite3session_patchset, "patchset") }

  private func payload(
    _ extract: (
      OpaquePointer?, UnsafeMutablePointer<Int32>?,
      UnsafeMutablePointer<UnsafeMutableRawPointer?>?
    ) -> Int32,
    _ name: String
  ) throws -> SessionPayload {
    var length: Int32 = 0
    var content: UnsafeMutableRawPointer?
    try database.check(extract(handle, &length, &content), name)
    return SessionPayload(content: content, length: Int(length))
  }
}

/// A changeset or a patchset in SQLite's memory.
final class SessionPayload {
  /// The contents.
  let bytes: UnsafeRawBufferPointer
  private let content: UnsafeMutableRawPointer?

  init(content: UnsafeMutableRawPointer?, length: Int) {
    self.content = content
    bytes = UnsafeRawBufferPointer(start: content, count: length)
  }

  /// Reads a payload that was written to a file.
  convenience init(contentsOf file: URL) throws {
    let attributes = try FileManager.default.attributesOfItem(atPath: file.path)
    let length = (attributes[.size] as? NSNumber)?.intValue ?? 0
    guard let stream = fopen(file.path, "rb") else { throw CocoaError(.fileReadUnknown) }
    defer { fclose(stream) }
    let content = sqlite3_malloc64(UInt64(length))
    guard fread(content, 1, length, stream) == length else {
      sqlite3_free(content)
      throw CocoaError(.fileReadCorruptFile)
    }
    self.init(content: content, length: length)
  }

  deinit { sqlite3_free(content) }

  /// Applies the changes within the transaction that is open.
  ///
  /// With `replacing` a conflicting change takes the place of what is there,
  /// where the extension allows that; otherwise it is left out.
  func apply(to database: Database, replacing: Bool) throws {
    var replacing = replacing
    try database.check(
      sqlite3changeset_apply(
        database.handle, Int32(bytes.count), UnsafeMutableRawPointer(mutating: bytes.baseAddress),
        nil,
        { context, conflict, _ in
          let replaces = context?.load(as: Bool.self) ?? false
          let mayReplace =
            conflict == SQLITE_CHANGESET_DATA || conflict == SQLITE_CHANGESET_CONFLICT
          return replaces && mayReplace ? SQLITE_CHANGESET_REPLACE : SQLITE_CHANGESET_OMIT
        },
        &replacing),
      "apply a changeset")
  }
}
