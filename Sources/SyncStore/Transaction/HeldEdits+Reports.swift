import SyncModel

extension HeldEdits {
  /// Returns the edits that are not lost to other devices' deletions.
  func present(
    _ session: StoreSession
  ) throws -> [(edit: Edit, access: TableAccess, state: RowState)] {
    try edits.compactMap { edit in
      guard let (access, state) = try session.state(of: edit) else { return nil }
      let row = RowKey(table: access.table.id, identity: edit.row)
      if edit.kind != .deletion, try session.isGone(row, state) { return nil }
      return (edit, access, state)
    }
  }

  /// Returns what users are told of the edits that are not lost to other devices' deletions.
  func reports(_ session: StoreSession) throws -> [StoreStatus.HeldEdit] {
    var reports: [StoreStatus.HeldEdit] = []
    for (edit, access, _) in try present(session) {
      let shown = try access.key(of: edit.row)
      let key = shown ?? Self.key(of: edit.row, access.table)
      reports.append(
        Self.report(
          edit, access.table,
          row: key?.map(Self.text).joined(separator: ", ") ?? edit.row.hexadecimal))
    }
    return reports.sorted { ($0.table, $0.row) < ($1.table, $1.row) }
  }

  static func key(of row: RowIdentity, _ table: TableSchema) -> [Value]? {
    table.identity == .surrogate
      ? nil : IdentityEncoding.values(of: row, count: table.identityPositions.count)
  }

  private static func report(
    _ edit: Edit, _ table: TableSchema, row: String
  ) -> StoreStatus.HeldEdit {
    // If none is large, the key is.
    let named = edit.large.isEmpty ? edit.columns : edit.large
    let columns = table.columns.filter { named.contains($0.wireName) }.map(\.name)
    let names = columns.map(quoted).joined(separator: ", ")
    let what =
      switch edit.kind {
      case .insertion: "The row \(row) in \(quoted(table.name))"
      case .update: "\(names) of the row \(row) in \(quoted(table.name))"
      case .deletion: "The deletion of the row \(row) in \(quoted(table.name))"
      }
    let isMostlyThere = edit.kind != .update && !columns.isEmpty
    return StoreStatus.HeldEdit(
      table: table.name, row: row, columns: columns,
      kind: edit.kind.reported, byteCount: edit.byteCount,
      message: "\(what) is too large to be sent (\(edit.byteCount) bytes"
        + (isMostlyThere ? ", most of it in \(names)" : "") + ") and stays on this device.",
      remedy: edit.kind == .deletion
        ? "Insert the row again: its key is too large for other devices to be told."
        : "Make it smaller than \(size(edit.limit)), keep the value in a file of its own, or delete "
          + "the row. Until then this device uploads no copy of the database.")
  }

  private static func size(_ bytes: Int) -> String {
    bytes >= 1 << 20 ? "\(bytes >> 20) MiB" : "\(bytes >> 10) KiB"
  }

  private static func text(_ value: Value) -> String {
    switch value {
    case .null: "NULL"
    case .integer(let number): "\(number)"
    case .real(let number): "\(number)"
    case .text(let bytes):
      "“\(start(String(decoding: bytes.prefix(80), as: UTF8.self), of: bytes, 80))”"
    case .blob(let bytes):
      "x'\(start(RowIdentity(bytes: Array(bytes.prefix(40))).hexadecimal, of: bytes, 40))'"
    case .identity(let row): row.hexadecimal
    }
  }

  private static func start(_ text: String, of bytes: [UInt8], _ count: Int) -> String {
    bytes.count > count ? text + "…" : text
  }
}

extension HeldEdits.Edit.Kind {
  fileprivate var reported: StoreStatus.HeldEdit.Kind {
    switch self {
    case .insertion: .insertion
    case .update: .update
    case .deletion: .deletion
    }
  }
}
