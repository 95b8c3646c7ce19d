import ArgumentParser
import DocumentSync
import SyncModel
import SyncStore

/// `docsync undo`
struct Undo: StoreVerb {
  static let configuration = CommandConfiguration(
    abstract: "Undo one change set, of this device or of another one.",
    discussion: """
      Name it as for “docsync show”; “docsync log” lists the change sets. Deleted rows come back, inserted \
      rows are deleted, and changed values become what they would be without the change set. What was \
      changed since stays as it is. The command lists what it will do before it asks. The next \
      “docsync sync” sends the edits to the other devices; they can be undone in turn.
      """
        + examples(
          "docsync undo notes.db 3 --dry-run", "docsync undo notes.db 3",
          "docsync undo notes.db k7qx2f/3"))

  @OptionGroup var arguments: StoreArguments

  @Argument(help: ArgumentHelp("The change set.", valueName: "CHANGESET"))
  var changeSet: ChangeSetReference

  @Flag(help: "Only show what would be done.")
  var dryRun = false

  @OptionGroup var confirmation: ConfirmationOptions
  @OptionGroup var output: OutputOptions

  /// The output with `--json`.
  struct Result: Encodable, Sendable {
    var store: String
    var client: String
    var number: UInt64
    var tables: [Table]
    /// The number of rows that stay as they are, wholly or in part.
    var leftCount: Int
    var leftRows: [LeftRow]
    /// Whether nothing was changed.
    var isDryRun: Bool
  }

  /// The edited rows of a table.
  struct Table: Encodable, Sendable {
    var name: SQLName
    var insertedRows: Int
    var updatedRows: Int
    var deletedRows: Int
  }

  /// A row that stays as it is.
  struct LeftRow: Encodable, Sendable {
    var table: SQLName
    /// The row's key; absent if it is not known here.
    var key: NamedValues<ValueJSON>?
    /// The columns that stay as they are; empty if the whole row does.
    var columns: [SQLName]
    /// `changedSince`, `hidden`, `unknown` or `refused`.
    var reason: String
    var message: String
  }

  /// The most rows of ``AppliedChangeSet/Undo/leftRows`` that are printed.
  private static let printedCount = 20

  func perform(_ console: Console) async throws -> Outcome {
    try await arguments.withManager { manager in
      let author = try ChangeSetFile.author(of: changeSet, manager)
      let names = await ClientNames(manager)
      let bar = ProgressBar(on: console)
      defer { bar.clear() }
      var undo = try await manager.undoChangeSet(
        changeSet.number, of: author, isRehearsal: true, onProgress: bar.handler)
      bar.clear()
      let name =
        author == manager.binding.client
        ? "change set \(changeSet.number) of this device"
        : "change set \(changeSet.number) of \(names.label(author))"
      if undo.rowCount > 0, !dryRun {
        try await confirmation.ask(
          "This undoes \(name).", lines(undo, isDone: false), path: arguments.store, console)
        undo = try await manager.undoChangeSet(
          changeSet.number, of: author, onProgress: bar.handler)
        bar.clear()
      }
      let isDone = undo.rowCount > 0 && !dryRun
      var lines = [
        undo.rowCount == 0
          ? undo.leftCount > 0
            ? "Nothing of \(name) can be undone." : "There is nothing to undo in \(name)."
          : "\(dryRun ? "This would undo" : "Undone:") \(name)\(dryRun ? ":" : ".")"
      ]
      lines += self.lines(undo, isDone: isDone).map { "  " + $0 }
      if isDone {
        lines.append(
          "“docsync sync \(shellWord(arguments.store))” sends this to the other devices.")
      }
      return Outcome(
        json: result(undo, author), lines: lines, status: undo.leftCount > 0 ? .waiting : .done)
    }
  }

  private func result(_ undo: AppliedChangeSet.Undo, _ author: ClientIdentifier) -> Result {
    Result(
      store: arguments.store, client: author.description, number: changeSet.number,
      tables: undo.tables.map {
        Table(
          name: $0.name, insertedRows: $0.insertedRows, updatedRows: $0.updatedRows,
          deletedRows: $0.deletedRows)
      },
      leftCount: undo.leftCount,
      leftRows: undo.leftRows.map { row in
        LeftRow(
          table: row.table,
          key: row.key.map { NamedValues(Array(zip(row.keyColumns, $0.map(ValueJSON.init)))) },
          columns: row.columns, reason: row.reason.rawValue, message: row.message)
      }, isDryRun: dryRun)
  }

  // MARK: - Text

  private func lines(_ undo: AppliedChangeSet.Undo, isDone: Bool) -> [String] {
    var lines = undo.tables.map { table in
      let parts = [
        (table.insertedRows, isDone ? "inserted again" : "will be inserted again"),
        (table.updatedRows, isDone ? "set back" : "will be set back"),
        (table.deletedRows, isDone ? "deleted" : "will be deleted"),
      ]
      return printable(table.name) + ": "
        + parts.filter { $0.0 > 0 }.map { "\(counted($0.0, "row")) \($0.1)" }.joined(
          separator: ", ")
    }
    guard undo.leftCount > 0 else { return lines }
    lines.append(
      "\(counted(undo.leftCount, "row")) \(undo.leftCount == 1 ? "stays" : "stay") as now:")
    lines += undo.leftRows.prefix(Self.printedCount).map { "  " + line($0) }
    let others = undo.leftCount - min(undo.leftRows.count, Self.printedCount)
    if others > 0 { lines.append("  and \(counted(others, "other row"))") }
    return lines
  }

  private func line(_ row: AppliedChangeSet.Undo.LeftRow) -> String {
    var text = printable(row.table)
    if let key = row.key {
      text +=
        " "
        + zip(row.keyColumns, key).map { "\(printable($0)) \(ValueJSON($1).text)" }
        .joined(separator: ", ")
    }
    if !row.columns.isEmpty { text += " (\(printable(row.columns.joined(separator: ", "))))" }
    return text + ": " + printable(row.message)
  }
}
