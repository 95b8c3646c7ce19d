import SyncModel

extension StoreVerifier {
  /// Checks the change sets that this store made: their bytes, their numbers, and whether each
  /// continues the one before it.
  func checkOutbox(_ session: StoreSession) throws {
    var last: SealedChangeSet?
    try session.outbox.forEach { number, sealed, bytes in
      try checkCancellation()
      guard let sealed else {
        return note(
          .outboxDamaged, "docsync_outbox", "The hash of change set \(number) is invalid.")
      }
      result.sealed.append(sealed)
      let before = last.flatMap { $0.client == sealed.client ? $0 : nil }
      if let before, number != before.number &+ 1, sealed.client == session.ownClient {
        note(
          .outboxDamaged, "docsync_outbox",
          "Change sets between \(before.number) and \(number) are missing.")
      }
      if sealed.isKept {
        check(sealed, bytes, after: before)
      } else if !sealed.isPublished {
        note(
          .outboxDamaged, "docsync_outbox",
          "Change set \(number) is not published, and its bytes are gone.")
      }
      last = sealed
    }
    try checkHead(session)
  }

  private func check(_ sealed: SealedChangeSet, _ bytes: [UInt8], after before: SealedChangeSet?) {
    func damaged(_ what: String, _ detail: String? = nil) {
      note(
        .outboxDamaged, "docsync_outbox", "Change set \(sealed.number) \(what).", detail: detail)
    }
    guard ContentHash(of: bytes) == sealed.hash, bytes.count == sealed.byteCount else {
      return damaged("has changed since it was sealed")
    }
    do {
      let changeSet = try ChangeSetCodec.decode(bytes)
      let header = changeSet.header
      let isElsewhere =
        result.binding.map { $0.root != header.root || $0.document != header.document } ?? false
      if header.client != sealed.client || header.number != sealed.number || isElsewhere {
        damaged("belongs elsewhere", "client \(header.client), number \(header.number)")
      }
      if changeSet.rowCount != sealed.rowCount {
        damaged("has \(changeSet.rowCount) rows, not \(sealed.rowCount)")
      }
      if let before, before.number &+ 1 == sealed.number, header.previous != before.hash {
        damaged("does not continue the one before it")
      }
    } catch {
      damaged("does not decode", "\(error)")
    }
  }

  /// Checks that the last change set is the one up to which the store has applied its own, unless
  /// some of these wait.
  private func checkHead(_ session: StoreSession) throws {
    guard let own = result.sealed.last(where: { $0.client == session.ownClient }) else { return }
    let applied = result.vector?[session.ownClient]
    if own.number == applied?.number, own.hash == applied?.hash { return }
    if own.number > applied?.number ?? 0, try session.isAwaitingOthers() { return }
    note(
      .outboxDamaged, "docsync_outbox",
      "The last change set is \(own.number), and the store says that it is "
        + "\(applied?.number ?? 0) or another.", detail: own.hash.nameFragment)
  }

  /// Checks the commands that this store made: their bytes and their numbers.
  func checkCommands(_ session: StoreSession) throws {
    result.commandState = try MetaTable.read(.commandState, database)
    var last: UInt64?
    try session.commands.forEachSealed { number, command, bytes in
      guard let command, ContentHash(of: bytes) == command.sealed?.hash else {
        return note(
          .outboxDamaged, "docsync_command", "Command \(number) has changed since it was sealed.")
      }
      if let last, number != last &+ 1 {
        note(
          .outboxDamaged, "docsync_command",
          "Commands between \(last) and \(number) are missing.")
      }
      last = number
      result.commands.append(command)
    }
  }

  /// Checks the change sets that wait.
  func checkInbox(_ session: StoreSession) throws {
    try session.inbox.forEach { client, number, hash, bytes in
      try checkCancellation()
      func damaged(_ detail: String) {
        note(
          .inboxDamaged, "docsync_inbox", "A waiting change set has changed since it arrived.",
          detail: "number \(number): \(detail)")
      }
      guard ContentHash(of: bytes) == hash else { return damaged("its bytes have another hash") }
      do {
        let header = try ChangeSetCodec.decode(bytes).header
        if header.client != client || header.number != number { damaged("it belongs elsewhere") }
      } catch let error as CodecError {
        damaged("\(error)")
      }
    }
  }

  /// Checks the entries of the conflict journal.
  func checkJournal(_ session: StoreSession) throws {
    let journal = session.conflicts.journal
    for number in try ConflictTable.numbers(database) {
      // Each entry is read alone, so that a damaged one does not hide the others.
      try guarded("docsync_conflict", .journalDamaged) { _ = try journal.entry(number) }
    }
    if let state = try journal.summary().archive { try checkArchive(state) }
  }

  /// Checks the file with older conflicts. What follows the last block that counts is no damage: the
  /// next transaction that writes to the file cuts it off.
  private func checkArchive(_ state: ArchiveState) throws {
    let archive = ConflictArchive(store: path, bound: options.conflictArchiveBytes)
    if let problem = state.problem {
      note(
        .conflictFileUnusable, nil,
        "Older conflicts stay in the database. \(problem.message(archive.path))",
        detail: problem.detail, remedy: problem.remedy)
    }
    guard state.count > 0 else { return }
    do {
      let unreadable = try archive.reading { file in
        let live = file.live(state)
        var count = state.missingCount(live)
        for block in live {
          try checkCancellation()
          if try block.entries(file) == nil { count += state.count(of: block) }
        }
        return (count: count, isOther: !file.hasBlocks(of: state.journal))
      }
      guard let unreadable else { return noteLostConflicts(state, archive, "is missing") }
      guard !unreadable.isOther else {
        return noteLostConflicts(state, archive, "has none of these conflicts")
      }
      guard unreadable.count > 0 else { return }
      note(
        .conflictFileUnusable, nil,
        "\(unreadable.count) of \(state.count) older conflicts cannot be read: the file "
          + "“\(archive.path)” is damaged.",
        remedy:
          "If you have a backup of the file, put it back. The other conflicts can be read, and "
          + "nothing else depends on these.")
    } catch let problem as ArchiveProblem {
      note(
        .conflictFileUnusable, nil,
        "The older conflicts cannot be read. \(problem.message(archive.path))",
        detail: problem.detail, remedy: problem.remedy)
    }
  }

  private func noteLostConflicts(
    _ state: ArchiveState, _ archive: ConflictArchive, _ reason: String
  ) {
    note(
      .conflictFileUnusable, nil,
      "\(state.count) older conflicts cannot be read: the file “\(archive.path)” \(reason).",
      remedy:
        "If the database was copied or moved without the file, put the file beside it under this "
        + "name. Nothing else depends on these conflicts.")
  }
}
