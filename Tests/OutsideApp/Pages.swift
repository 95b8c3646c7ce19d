// Runs the examples of the DocC catalogue, which `.ci/outside-app` compiles with this app.
import DocumentSync
import Foundation

/// Texts that an example shows.
final class Shown: Sendable {
  private let lock = NSLock()
  nonisolated(unsafe) private var lines: [String] = []

  var all: [String] { lock.withLock { lines } }
  @Sendable func show(_ line: String) { lock.withLock { lines.append(line) } }
}

/// Waits until a condition holds, at most for two minutes.
private func waiting(for text: String, _ holds: () -> Bool) async throws {
  let deadline = ContinuousClock.now + .seconds(120)
  while !holds() {
    try expect(ContinuousClock.now < deadline, "waited in vain for \(text)")
    try await Task.sleep(for: .milliseconds(20))
  }
}

/// Goes through the articles with two devices and two documents.
struct Pages {
  let folder: URL
  private var directory: FolderDirectory { FolderDirectory(root: path("Shared")) }

  private func path(_ name: String) -> String { folder.appendingPathComponent(name).path }

  func run() async throws {
    for name in ["Shared", "Laptop", "Phone"] {
      try FileManager.default.createDirectory(
        atPath: path(name), withIntermediateDirectories: true)
    }
    for name in ["one", "two"] { try await createProject(name) }
    let laptop = try await openProjects(in: path("Laptop"), through: directory)
    let phone = try await openProjects(in: path("Phone"), through: directory)
    try expect(laptop.count == 2 && phone.count == 2, "several documents: \(phone.map(\.path))")
    try await synchronizeAll(laptop + phone)
    try await conflict(laptop[0], phone[0])
    try await progress(laptop[0], phone[0])
    try await switchedOff(phone[0])
    try await errors(laptop[1], phone[1])
    try expect(phone[0].state == .registered, "each document has a state of its own")
    try await end(laptop[0])
    try await cancelled(phone[0])
    for manager in [laptop[1], phone[0], phone[1]] { try await manager.close() }
    try await quickStart()
    try await adopting()
  }

  private func createProject(_ name: String) async throws {
    let store = path("Laptop/\(name).db")
    try edit(
      store,
      """
      CREATE TABLE notes (id INTEGER PRIMARY KEY, title TEXT, text TEXT);
      INSERT INTO notes VALUES (1, 'Milk', 'one litre');
      CREATE TABLE articles (id INTEGER PRIMARY KEY, stock INTEGER, note_id INTEGER);
      INSERT INTO articles VALUES (1, 3, 1);
      CREATE TABLE drafts (id INTEGER PRIMARY KEY, text TEXT)
      """)
    let chosen = try configuration(forStoreAt: store)
    try expect(chosen.references == ["articles": ["note_id": "notes"]], "\(chosen.references)")
    let manager = try await OutsideApp.createProject(
      named: "Project \(name)", identifier: name, storeAt: store, through: directory)
    try await manager.close()
  }

  private func conflict(_ laptop: DocumentSyncManager, _ phone: DocumentSyncManager) async throws {
    try await askAboutTitles(phone)
    phone.setDelegate(MergingDelegate())
    try edit(laptop.path, "UPDATE notes SET title = 'Oat milk', text = 'two'")
    try edit(phone.path, "UPDATE notes SET title = 'Rye bread', text = 'three pieces'")
    try await laptop.synchronize()
    let report = try await phone.synchronize()
    try expect(report.conflicts == 2 && report.openConflicts == 1, "\(report)")
    try await laptop.synchronize()
    try await restoreNewest(in: laptop, of: "notes")
    let restored = try await laptop.conflicts().filter { $0.status == .restored }
    try expect(restored.count == 1, "nothing was restored")
  }

  private func progress(_ laptop: DocumentSyncManager, _ phone: DocumentSyncManager) async throws {
    let shown = Shown()
    _ = try await synchronizeShowingProgress(laptop, show: shown.show)
    try expect(shown.all.contains { $0.hasPrefix("finished") }, "\(shown.all)")
    try expect(try await synchronize(phone, for: .seconds(60)) != nil, "it took a minute")
    let queue = synchronize(laptop, before: phone)
    try await waiting(for: "the queue to end") { queue.operationCount == 0 }
    try expect(try await laptop.status().unsealedEdits == 0, "the queue did not send")
  }

  private func switchedOff(_ manager: DocumentSyncManager) async throws {
    let shown = Shown()
    for isOn in [true, false] {
      let other = try await DocumentSyncManager.open(
        storeAt: manager.path, directory: SwitchedDirectory(base: directory) { isOn })
      try await synchronizeOrTell(other, show: shown.show)
      try await other.close()
    }
    try expect(shown.all.count == 1 && shown.all[0].hasPrefix("Offline."), "\(shown.all)")
  }

  private func errors(_ laptop: DocumentSyncManager, _ phone: DocumentSyncManager) async throws {
    try expect(try await carryOut(.verify, with: phone), "a finding")
    let removal = try await deleteProject(laptop)
    try expect(removal.documents.map(\.identifier) == ["two"], "\(removal)")
    let shown = Shown()
    try await synchronizeOrTell(phone, show: shown.show)
    try expect(shown.all.count == 1 && shown.all[0].contains("this laptop"), "\(shown.all)")
    let asked = Shown()
    phone.setDelegate(
      AskingDelegate { question, buttons in
        asked.show(question)
        return buttons.contains("leave") ? "leave" : "stop"
      })
    try await synchronizeOrTell(phone, show: shown.show)
    try expect(asked.all == ["“two” was deleted on this laptop."], "\(asked.all)")
    try expect(phone.state == .left, "\(phone.state)")
  }

  private func end(_ manager: DocumentSyncManager) async throws {
    let shown = Shown()
    async let states: Void = showStates(of: manager, show: shown.show)
    try await waiting(for: "the first state") { !shown.all.isEmpty }
    try expect(try await leave(manager, isConfirmed: true), "it has not left")
    await states
    try expect(shown.all == ["In sync", "Local only"], "\(shown.all)")
  }

  /// The call that does not return in time goes on alone: nothing else uses the directory afterwards.
  private func cancelled(_ manager: DocumentSyncManager) async throws {
    let slow = try await DocumentSyncManager.open(
      storeAt: manager.path,
      directory: SwitchedDirectory(base: directory) {
        Thread.sleep(forTimeInterval: 0.5)
        return true
      })
    try expect(
      try await synchronize(slow, for: .milliseconds(20)) == nil, "it was not cancelled")
    try await slow.close()
  }

  private func quickStart() async throws {
    try edit(path("notes.db"), "CREATE TABLE notes (id INTEGER PRIMARY KEY, text TEXT)")
    try FileManager.default.createDirectory(
      atPath: path("Other"), withIntermediateDirectories: true)
    let report = try await synchronizeNotes(at: path("notes.db"), through: path("Other"))
    try expect(report.waiting.isEmpty, "\(report)")
  }

  /// The page about adopting checks itself, and waits for what its observations see.
  private func adopting() async throws {
    let recipes = folder.appendingPathComponent("Recipes")
    try FileManager.default.createDirectory(at: recipes, withIntermediateDirectories: true)
    try await withThrowingTaskGroup(of: Void.self) { group in
      group.addTask { try await tryRecipes(in: recipes) }
      group.addTask {
        try await Task.sleep(for: .seconds(120))
        throw Unexpected("the page about adopting waited in vain for two minutes")
      }
      try await group.next()
      group.cancelAll()
    }
  }
}
