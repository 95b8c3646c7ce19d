import SyncModel
import SyncStore

/// The result of leaving a document.
public struct LeaveReport: Hashable, Sendable {
  /// The binding that the store had.
  public var binding: StoreBinding
  /// The report of the last synchronization; `nil` if there was none.
  public var synchronization: SyncReport?
  /// The lost data, which only the bookkeeping contained.
  public var loss: RemovalLoss
  /// Whether the other devices were told.
  public var hasToldOthers: Bool

  /// Creates a report from its parts.
  package init(
    binding: StoreBinding, synchronization: SyncReport?, loss: RemovalLoss, hasToldOthers: Bool
  ) {
    self.binding = binding
    self.synchronization = synchronization
    self.loss = loss
    self.hasToldOthers = hasToldOthers
  }
}
