import SyncDirectory
import SyncModel
import SyncStore

/// How a keeper notices that there is something to synchronize.
extension DocumentKeeper {
  /// Begins to watch what is not watched yet.
  func beginWatching(_ manager: DocumentSyncManager) async {
    guard isAutomatic, !watches.areComplete else { return }
    let wantsStore = watches.store == nil
    let wantsDirectory = watches.directory == nil && !document.pollsDirectory
    let (store, directory) = await Self.onThread { [path] in
      (
        wantsStore ? FolderWatch.changes(ofDatabaseAt: path) : nil,
        wantsDirectory ? manager.directoryChanges() : nil
      )
    }
    guard !isClosed else { return }
    if let store, watches.store == nil {
      watches.store = Task { [weak self, clock, timing] in
        for await _ in store {
          let noticed = clock.now()
          // A program that has begun to write shall not meet a reader before its commit.
          do { try await clock.sleep(timing.quietTime) } catch { return }
          await self?.storeChanged(at: noticed)
        }
        if !Task.isCancelled { await self?.storeWatchEnds() }
      }
    }
    if let directory, watches.directory == nil {
      watches.directory = Task { [weak self] in
        for await _ in directory { await self?.note(.directoryChange) }
        if !Task.isCancelled { await self?.directoryWatchEnds() }
      }
    }
    schedule.isWatched = watches.areComplete
  }

  /// Says once that changes are not reported. While the directory is away they cannot be.
  func notePolling() {
    guard isAutomatic else { return }
    if !watches.areComplete, !isPolling { events.send(.polling(document: path)) }
    isPolling = !watches.areComplete
  }

  private func storeWatchEnds() {
    watches.store = nil
    schedule.isWatched = false
    // The next synchronization begins to watch again.
    note(.localChange)
  }

  private func directoryWatchEnds() {
    watches.directory = nil
    schedule.isWatched = false
    note(.directoryChange)
  }

  /// Synchronizes if the change of the store's file is an edit that was not sent: synchronizing changes
  /// the file, too.
  ///
  /// - Parameter time: When the change was noticed. What follows it meanwhile is noticed by itself.
  func storeChanged(at time: Duration) async {
    guard attempt == nil else {
      mustLook = true
      return
    }
    mustLook = false
    guard let manager, !isClosed else { return }
    // The edits of another file in its place are not in this one.
    guard await Self.onThread({ manager.isFileInPlace }) else {
      return note(.localChange, at: time)
    }
    await waitForTransaction()
    await countPending()
    guard !holdsChanges else { return }
    do {
      guard try await manager.hasUnsentEdits() else { return }
    } catch {
      // The synchronization says what is wrong.
    }
    note(.localChange, at: time)
  }

  /// Counts the edits to send, and says so if their number, or where they wait, has changed.
  func countPending() async {
    guard let manager else { return }
    let count: StoreStatus.PendingCount
    do { count = try await manager.pendingCount() } catch {
      // The synchronization says what is wrong.
      return
    }
    let before = pending?.total ?? 0
    let isNew = count != pending && (count.total > 0 || before > 0)
    pending = count
    if isNew { events.send(.pendingCountChanged(document: path, count)) }
  }

  /// Waits while a program writes in rollback mode: its commit would meet a reader, and not each program waits
  /// for that. A transaction may take long, so this does not wait for ever.
  private func waitForTransaction() async {
    let start = clock.now()
    while clock.now() - start < timing.longestDelay,
      await Self.onThread({ [path] in DatabaseJournal(ofDatabaseAt: path).isInUse })
    {
      do { try await clock.sleep(timing.quietTime) } catch {
        // Cancelled: nothing is looked at any more.
        return
      }
    }
  }

  /// Looks now and then whether the directory has returned.
  func lookForDirectory() {
    guard isAutomatic, !isClosed else { return }
    stopProbe()
    // Something else may stand at its path for long, such as the empty folder of a mount.
    let pause = timing.jittered(
      lastError?.code == .directoryAway
        ? timing.probeInterval
        : max(timing.probeInterval, timing.pause(afterFailures: schedule.failures)),
      random())
    probe = Task { [weak self, clock] in
      repeat {
        do { try await clock.sleep(pause) } catch {
          // Cancelled, since a synchronization has begun.
          return
        }
      } while await self?.isDirectoryAway() == true && !Task.isCancelled
      if !Task.isCancelled { await self?.probeEnds() }
    }
  }

  private func probeEnds() {
    probe = nil
    note(.directoryReturned)
  }

  private func isDirectoryAway() async -> Bool {
    // A store that could not be opened is opened by the synchronization.
    guard let manager else { return false }
    return await !manager.isDirectoryThere()
  }
}
