import DocumentSync
import Foundation
import SyncDirectory

/// The steps of the demo.
struct DemoStory {
  private static let schema = [
    "CREATE TABLE notes (id INTEGER PRIMARY KEY, title TEXT NOT NULL)",
    "CREATE TABLE tags (id INTEGER PRIMARY KEY, name TEXT NOT NULL)",
    """
    CREATE TABLE note_tags (
      note_id INTEGER NOT NULL REFERENCES notes ON DELETE CASCADE,
      tag_id INTEGER NOT NULL REFERENCES tags ON DELETE CASCADE,
      PRIMARY KEY (note_id, tag_id))
    """,
  ]

  private let folder: String
  private let isKept: Bool
  private let console: Console
  private let laptop: DemoDevice
  private let phone: DemoDevice
  private let tablet: DemoDevice
  private var tree: DemoTree
  private var step = 0

  private var devices: [DemoDevice] { [laptop, phone, tablet] }
  private var shared: FolderDirectory { FolderDirectory(root: folder + "/shared") }

  init(folder: String, isKept: Bool, console: Console) {
    self.folder = folder
    self.isKept = isKept
    self.console = console
    func device(_ name: String) -> DemoDevice {
      DemoDevice(name: name, store: "\(folder)/\(name)/notes.db")
    }
    (laptop, phone, tablet) = (device("laptop"), device("phone"), device("tablet"))
    tree = DemoTree(FolderDirectory(root: folder + "/shared"))
  }

  /// Runs all steps; returns the devices at the end.
  mutating func tell() async throws -> [Demo.Device] {
    for name in devices.map(\.name) + ["shared"] {
      try FileManager.default.createDirectory(
        atPath: folder + "/" + name, withIntermediateDirectories: false)
    }
    tell("Three devices share one document, without a server.")
    tell("Everything is in \(folder)" + (isKept ? "." : ",\nand removed at the end."))
    try await begin()
    try await editAndDisagree()
    try await insertUnderOneKey()
    try await delete()
    return try await compare()
  }

  // MARK: - Steps

  private mutating func begin() async throws {
    say("The laptop has a database, made with plain SQL.")
    try type(
      laptop,
      Self.schema + [
        "INSERT INTO notes (title) VALUES ('Groceries'), ('Old list')",
        "INSERT INTO tags (name) VALUES ('home'), ('work')",
        "INSERT INTO note_tags VALUES (1, 1), (2, 2)",
      ])
    try show([laptop])

    say("It is put under sync. The shared directory is an ordinary folder.")
    command("init laptop/notes.db --directory shared")
    try await introduce(
      laptop,
      try await DocumentSyncManager.create(
        storeAt: laptop.store, directory: shared, document: "notes",
        options: .init(client: laptop.name)))
    try showTree()

    say("The phone and the tablet join.")
    for device in [phone, tablet] {
      command("join \(device.name)/notes.db --directory shared")
      try await introduce(
        device,
        try await DocumentSyncManager.join(
          storeAt: device.store, directory: shared, options: .init(client: device.name)))
    }
    try show(devices)
    try showTree(onlyNew: true)
  }

  private mutating func editAndDisagree() async throws {
    say("Offline, the laptop and the phone change the same title.")
    try type(laptop, ["UPDATE notes SET title = 'Groceries, Sat' WHERE id = 1"])
    // Edits are timed to the millisecond; of two in one, either may count as the later.
    try await Task.sleep(for: .milliseconds(2))
    try type(phone, ["UPDATE notes SET title = 'Groceries, Sun' WHERE id = 1"])
    try show([laptop, phone])

    say("They sync. A conflict: the later edit is shown, on both.")
    try await sync([laptop, phone, laptop])
    try show([laptop, phone])
    try showTree(onlyNew: true)

    say("The earlier edit is not lost: each device can restore it from its journal.")
    try await showConflict(laptop)
    try await restoreConflict(laptop)
    try await sync([laptop, phone])
    try show([laptop, phone])
  }

  private mutating func insertUnderOneKey() async throws {
    say("The phone and the tablet both add a note. SQLite calls both of them 3.")
    try type(
      phone,
      [
        "INSERT INTO notes (title) VALUES ('Call Ada')",
        "INSERT INTO note_tags VALUES (3, 1)",
      ])
    try type(
      tablet,
      [
        "INSERT INTO notes (title) VALUES ('Slides')",
        "INSERT INTO note_tags VALUES (3, 2)",
      ])
    try show([phone, tablet])

    say("They sync. Both notes arrive, each with its own tag; no key changed.")
    try await sync([phone, tablet, laptop, phone])
    try show(devices)
  }

  private mutating func delete() async throws {
    say("The tablet deletes a note; its tags go with it, as the schema says.")
    try type(
      tablet, ["PRAGMA foreign_keys = ON", "DELETE FROM notes WHERE title = 'Old list'"])
    try await sync([tablet, phone, laptop])
    try show(devices)
  }

  private mutating func compare() async throws -> [Demo.Device] {
    say("All sync until there is nothing left to send. The directory now:")
    for _ in 0..<5 {
      var isIdle = true
      for device in devices {
        let report = try await device.synchronize()
        isIdle = isIdle && report.isIdle
      }
      if isIdle { break }
    }
    try showTree()

    say("Do all show the same? A checksum of all rows, without integer keys:")
    var result: [Demo.Device] = []
    for device in devices {
      let digest = try await device.digest()
      result.append(
        Demo.Device(
          clientName: device.name, store: device.store, visible: digest.visible.description,
          logical: digest.logical.description, rowCount: digest.rowCount,
          notes: try notes(device)))
      tell(
        "   " + device.name.padding(toLength: 8, withPad: " ", startingAt: 0)
          + digest.visible.description)
    }
    return result
  }

  // MARK: - Telling

  private mutating func say(_ title: String) {
    step += 1
    tell("\n\("\(step)".leftPadded(to: 2)) \(title)")
  }

  private func tell(_ text: String) { console.say(text.components(separatedBy: "\n")) }

  private func command(_ words: String) { tell("   $ docsync \(words)") }

  /// Runs SQL on a device and prints it as if the user had typed it.
  private func type(_ device: DemoDevice, _ statements: [String]) throws {
    for statement in statements {
      let lines = (statement + ";").split(separator: "\n").map(String.init)
      for (index, line) in lines.enumerated() {
        let prompt = index == 0 ? device.name + ">" : "   ...>"
        tell("   \(prompt.padding(toLength: 8, withPad: " ", startingAt: 0))\(line)")
      }
    }
    try device.run(statements)
  }

  /// Prints the newest conflict of a device's journal.
  private func showConflict(_ device: DemoDevice) async throws {
    let lines: [String] = try await withManager(device.store, directory: nil) { manager in
      let names = await ClientNames(manager)
      guard let conflict = try await manager.conflicts().first else { return [] }
      command("conflicts \(device.name)/notes.db show \(conflict.number)")
      return ConflictJSON(conflict, names: names).lines
    }
    for line in lines { tell("       " + line) }
  }

  /// Puts back what the newest conflict of a device's journal does not show.
  private func restoreConflict(_ device: DemoDevice) async throws {
    try await withManager(device.store, directory: nil) { manager in
      guard let number = try await manager.conflicts().first?.number else { return }
      command("conflicts \(device.name)/notes.db restore \(number)")
      try await manager.restoreConflict(number)
    }
  }

  /// Shows a client under the name of its device from now on.
  private mutating func introduce(
    _ device: DemoDevice, _ manager: DocumentSyncManager
  ) async throws {
    tree.call(manager.binding.client, device.name)
    try await manager.close()
  }

  private func sync(_ devices: [DemoDevice]) async throws {
    for device in devices {
      let lines = Sync.lines(
        try await device.synchronize(), store: "\(device.name)/notes.db", ClientNames())
      command("sync \(device.name)/notes.db")
      for line in lines { tell("       " + line) }
    }
  }

  private func notes(_ device: DemoDevice) throws -> [Demo.Note] {
    try device.rows(
      """
      SELECT notes.id, title, coalesce(group_concat(name, ' '), '') FROM notes
      LEFT JOIN note_tags ON note_id = notes.id LEFT JOIN tags ON tag_id = tags.id
      GROUP BY notes.id ORDER BY title
      """
    ).map { row in
      Demo.Note(
        key: Int64(row[0]) ?? 0, title: row[1], tags: row[2].split(separator: " ").map(String.init))
    }
  }

  /// Prints the notes of some devices side by side.
  private func show(_ devices: [DemoDevice]) throws {
    let columns = try devices.map { device in
      [device.name + " shows"]
        + (try notes(device)).map { note in
          (["\(note.key)", note.title] + note.tags.map { "#" + $0 }).joined(separator: " ")
        }
    }
    let height = columns.map(\.count).max() ?? 0
    for row in 0..<height {
      let cells = columns.map { column in
        (row < column.count ? column[row] : "").padding(
          toLength: 25, withPad: " ", startingAt: 0)
      }
      let line = "   " + cells.joined()
      tell(line.trimmingEnd())
    }
  }

  private mutating func showTree(onlyNew: Bool = false) throws {
    tell("   shared/" + (onlyNew ? "  (what is new)" : ""))
    for line in try tree.lines(onlyNew: onlyNew) { tell(line) }
  }
}

extension String {
  /// Returns the text without spaces at its end.
  fileprivate func trimmingEnd() -> String {
    var text = self
    while text.last == " " { text.removeLast() }
    return text
  }
}
