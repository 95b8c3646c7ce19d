import Foundation
import SyncModel
import Testing

@testable import SyncStore

/// What the shared directory has of a document: the whole store of its
/// beginning, and all change sets.
final class World {
  let beginning: String
  private var devices: [() -> Device?] = []
  private var count = 0

  init(beginning: String) { self.beginning = beginning }

  func add(_ device: Device) {
    device.world = self
    devices.append { [weak device] in device }
  }

  /// Forgets a device whose store is closed.
  func remove(_ device: Device) { devices.removeAll { $0() === device } }

  /// Compares the tables that a program has made again, as a synchronization
  /// does: with a store that has applied the same change sets as the device's.
  func compareRemadeTables(of device: Device) throws {
    let remade = try device.store.remadeTables()
    guard !remade.isEmpty, FileManager.default.fileExists(atPath: beginning) else { return }
    count += 1
    let path = "\(beginning).\(count)"
    try FileManager.default.copyItem(atPath: beginning, toPath: path)
    var binding = device.store.binding
    binding.client = .random()
    let base = try LocalStore.adopt(
      snapshotAt: path, binding: binding, options: device.store.options)
    let states = Dictionary(grouping: remade, by: \.vector)
    for (vector, tables) in states.sorted(by: { $1.key.contains($0.key) }) {
      _ = try base.apply(changeSets(in: vector))
      #expect(try base.vector().contains(vector))
      try device.store.compare(tables, with: base)
    }
    try base.close()
  }

  private func changeSets(in vector: VersionVector) throws -> [ReceivedChangeSet] {
    var sets: [ReceivedChangeSet] = []
    for other in devices.compactMap({ $0() }) {
      let applied = vector.number(of: other.store.binding.client)
      guard
        applied > 0
          && !sets.contains(where: {
            $0.changeSet.header.client == other.store.binding.client
          })
      else { continue }
      for sealed in try other.store.sealedChangeSets() where sealed.number <= applied {
        let bytes = try other.store.sealedBytes(sealed.number)
        sets.append(
          ReceivedChangeSet(
            changeSet: try ChangeSetCodec.decode(bytes), hash: ContentHash(of: bytes),
            bytes: bytes))
      }
    }
    return sets
  }
}
