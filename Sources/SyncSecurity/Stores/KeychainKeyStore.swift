#if canImport(Security)
  import Foundation
  import Security
  import SyncModel

  /// Keys in the keychain of Apple's systems, of this device alone: they are in no backup that
  /// another device could restore, and not in iCloud.
  package final class KeychainKeyStore: KeyStore, @unchecked Sendable {
    private let lock = NSLock()
    private let service: String

    /// Creates a store.
    ///
    /// - Parameter service: The name under which the keychain shows the keys.
    package init(service: String = "DocumentSync") { self.service = service }

    /// Returns the keys for an application; `nil` if there are none.
    package func keys(for root: RootIdentifier) throws -> StoredKeys? {
      var query = item(root)
      query[kSecReturnData as String] = true
      var found: CFTypeRef?
      let status = SecItemCopyMatching(query as CFDictionary, &found)
      guard status != errSecItemNotFound else { return nil }
      guard status == errSecSuccess, let data = found as? Data else { throw Self.failure(status) }
      return try StoredKeys(decoding: [UInt8](data))
    }

    /// Changes the keys for an application. Threads of this process wait for one another.
    package func update<Result>(
      _ root: RootIdentifier, _ change: (inout StoredKeys?) throws -> Result
    ) throws -> Result {
      try lock.withLock {
        let before = try keys(for: root)
        var keys = before
        let result = try change(&keys)
        guard keys != before else { return result }
        let status: OSStatus
        if let keys {
          let data = [kSecValueData as String: Data(keys.encoded())]
          if before == nil {
            let attributes = item(root).merging(data as [String: Any]) { $1 }.merging([
              kSecAttrAccessible as String:
                kSecAttrAccessibleAfterFirstUnlockThisDeviceOnly as Any
            ]) { $1 }
            status = SecItemAdd(attributes as CFDictionary, nil)
          } else {
            status = SecItemUpdate(item(root) as CFDictionary, data as CFDictionary)
          }
        } else {
          status = SecItemDelete(item(root) as CFDictionary)
        }
        guard status == errSecSuccess else { throw Self.failure(status) }
        return result
      }
    }

    private func item(_ root: RootIdentifier) -> [String: Any] {
      [
        kSecClass as String: kSecClassGenericPassword, kSecAttrService as String: service,
        kSecAttrAccount as String: root.description,
        kSecUseDataProtectionKeychain as String: true,
      ]
    }

    private static func failure(_ status: OSStatus) -> SecurityError {
      SecurityError(
        .keysUnavailable, "The keychain does not give or take the keys of this device.",
        remedy: "Unlock the device, and let the app use its keychain.", detail: "status \(status)")
    }
  }
#endif
