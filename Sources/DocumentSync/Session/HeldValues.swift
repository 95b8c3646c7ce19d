import SyncModel
import SyncStore
import Synchronization

/// The values that a synchronization has read from its store, so that it reads
/// and decodes each of them once.
///
/// Only one synchronization of a store runs at a time, and it writes these
/// values through its session. Other calls that write them have to ``forget()``
/// them: those that exchange the content of the store, and those that write
/// records along with rows. If the store becomes another client, or moves to
/// another generation, the values of the former one no longer count.
final class HeldValues: Sendable {
  private struct Owner: Hashable {
    var client: ClientIdentifier
    var generation: IntegrityKey
  }

  private struct Held<Value: Sendable>: Sendable {
    var value: Value
  }

  private struct State {
    var owner: Owner?
    var values: [String: any Sendable] = [:]
  }

  private let state = Mutex(State())

  /// Returns the value that is held, or reads it.
  func value<Value: Sendable>(
    _ key: String, of binding: StoreBinding, _ read: () throws -> Value
  ) throws -> Value {
    let owner = Owner(client: binding.client, generation: binding.generation)
    let held = state.withLock { $0.owner == owner ? $0.values[key] as? Held<Value> : nil }
    if let held { return held.value }
    let value = try read()
    hold(value, key, of: binding)
    return value
  }

  /// Holds a value that was written.
  func hold<Value: Sendable>(_ value: Value, _ key: String, of binding: StoreBinding) {
    let owner = Owner(client: binding.client, generation: binding.generation)
    state.withLock { state in
      if state.owner != owner { state = State(owner: owner) }
      state.values[key] = Held(value: value)
    }
  }

  func forget() { state.withLock { $0 = State() } }
}
