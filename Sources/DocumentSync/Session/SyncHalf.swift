/// What a synchronization does.
enum SyncHalf {
  case both
  /// Applies the edits of others, and sends none.
  case fetching
  /// Sends the edits of this device, and applies none of others.
  case sending
}
