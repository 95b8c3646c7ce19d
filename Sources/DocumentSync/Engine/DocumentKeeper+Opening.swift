import SyncStore

/// The manager of a keeper.
extension DocumentKeeper {
  /// Returns the manager; opens the store if it is not open, once however many ask.
  func openManager() async throws -> DocumentSyncManager {
    guard !isClosed else { throw SyncError.engineClosed("open the store") }
    if let manager { return manager }
    if let opening { return try await opening.value }
    var options = options
    // A manager that is closed ends its events; the next one has others.
    options.events = relayedEvents()
    let opening = Task { [path, document, options] in
      try await DocumentSyncManager.open(
        storeAt: path, directory: document.directory, options: options)
    }
    self.opening = opening
    let result = await opening.result
    self.opening = nil
    // Then the end of the keeper closes it.
    guard !isClosed else { throw SyncError.engineClosed("open the store") }
    manager = try result.get()
    return try result.get()
  }

  /// The events of one manager, which come to the observers of the engine and of the document.
  private func relayedEvents() -> SyncEvents {
    let relayed = SyncEvents()
    relayed.relay { [events, path, observed = document.options.events] event in
      guard let event else { return }
      events.send(.documentEvent(document: path, event))
      if case .stateChanged(let state) = event {
        observed.enter(state)
      } else {
        observed.send(event)
      }
    }
    return relayed
  }

  /// Closes the store if another file has taken its place, which is another database or an older state
  /// of this one.
  func leaveReplacedFile() async throws {
    guard let manager else { return }
    if await Self.onThread({ manager.isFileInPlace }) { return }
    // Another task may have closed it meanwhile, and opened the new file.
    guard self.manager === manager else { return }
    watches.cancel()
    await closeManager()
  }

  /// Empties SQLite's write-ahead log after an attempt. Another program cannot do so when it is closed,
  /// since the store stays open here: a backup of the file alone would lack the last edits.
  func emptyLog() async {
    guard let manager else { return }
    do { try await manager.checkpoint() } catch {
      let error = SyncError.wrapping(error, operation: "empty the write-ahead log", path: path)
      options.environment.logger.notice("\(error.operation): \(error)")
    }
  }

  /// Synchronizes again when the file of the store is another one than before the attempt that has
  /// failed: a backup may be put in its place. Looks more and more rarely.
  func awaitOtherFile(than failed: StoreFileState) {
    guard isAutomatic, !isClosed else { return }
    stopProbe()
    let pause = max(timing.probeInterval, timing.pause(afterFailures: schedule.failures))
    probe = Task { [weak self, clock, path] in
      repeat {
        do { try await clock.sleep(pause) } catch {
          // Cancelled, since a synchronization has begun.
          return
        }
      } while await Self.onThread({ StoreFileState(path) }) == failed && !Task.isCancelled
      if !Task.isCancelled { await self?.otherFileIsThere() }
    }
  }

  private func otherFileIsThere() async {
    guard attempt == nil, schedule.hold == .failed, !isClosed else { return }
    probe = nil
    // What an open connection knows of the file may be of the former content.
    if lastError?.code.mayPassWithSchema != true {
      watches.cancel()
      schedule.isWatched = false
      await closeManager()
    }
    schedule.endFailure()
    note(.localChange)
  }

  /// Closes the store, if it is open.
  func closeManager() async {
    guard let manager else { return }
    self.manager = nil
    // Another file may be at the path by then.
    pending = nil
    do { try await manager.close() } catch {
      let error = SyncError.wrapping(error, operation: "close the store", path: path)
      events.send(.failed(document: path, error, retry: .never))
    }
  }
}
