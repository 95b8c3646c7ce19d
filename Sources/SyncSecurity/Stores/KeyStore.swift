import SyncModel

/// The place where a device keeps its keys: never in a document's store, and never in the shared
/// directory.
package protocol KeyStore: Sendable {
  /// Returns the keys for an application; `nil` if there are none.
  func keys(for root: RootIdentifier) throws -> StoredKeys?

  /// Changes the keys for an application, while no other process does.
  ///
  /// `change` gets what is stored, or `nil`, and leaves what is to be stored; `nil` removes the
  /// keys. If it throws, nothing changes. When the function returns, the keys are on the medium.
  func update<Result>(
    _ root: RootIdentifier, _ change: (inout StoredKeys?) throws -> Result
  ) throws -> Result
}

extension KeyStore {
  /// Returns the keys of this device for an application, and draws them at the first call. Two
  /// processes at once get the same.
  package func deviceKeys(for root: RootIdentifier) throws -> DeviceKeys {
    if let stored = try keys(for: root) { return stored.device }
    return try update(root) { stored in
      if let stored { return stored.device }
      let device = try DeviceKeys.random()
      stored = StoredKeys(device: device)
      return device
    }
  }
}

/// What a ``KeyStore`` keeps for one application.
package struct StoredKeys: Hashable, Sendable {
  /// The keys of the device.
  package let device: DeviceKeys
  /// The name key, if the device is an owner's.
  package var nameKey: NameKey?
  /// The epoch keys that the device has opened. Old ones stay: old files need them.
  package var epochs: [EpochReference: EpochKey] = [:]
  /// The invitations of this device that are not done.
  package var invitations: [PendingInvitation] = []
  /// The number of the last invitation.
  package var lastInvitation: UInt64 = 0

  /// Stores the keys of a new device.
  package init(device: DeviceKeys) { self.device = device }
}
