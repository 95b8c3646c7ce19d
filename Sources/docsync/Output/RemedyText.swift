import SyncModel

extension Remedy {
  /// The remedy with the commands and options of docsync.
  var commandText: String { text(\.command) }
}

extension Remedy.Action {
  /// The command or the option for the action.
  var command: String {
    switch self {
    case .create: "“docsync init”"
    case .join: "“docsync join”"
    case .joinReplacing: "“docsync join --replace”"
    case .joinMerging: "“docsync join --merge”"
    case .synchronize: "“docsync sync”"
    case .synchronizeThoroughly: "“docsync sync --thorough”"
    case .synchronizeRejoining: "“docsync sync --rejoin”"
    case .synchronizeRecreating: "“docsync sync --recreate”"
    case .synchronizeMerging: "“docsync sync --merge”"
    case .reset: "“docsync reset”"
    case .upload: "“docsync upload”"
    case .verify: "“docsync verify”"
    case .leave: "“docsync leave”"
    case .leaveAbandoning: "“docsync leave --abandon”"
    case .removeClient: "“docsync remove-client”"
    case .deleteDocument: "“docsync delete-document”"
    case .listClients: "“docsync clients”"
    case .listDocuments: "“docsync documents”"
    case .listChangeSets: "“docsync log”"
    case .listConflicts: "“docsync conflicts”"
    case .answerConflict(let number): "“docsync conflicts … resolve \(number)”"
    case .restoreConflict(let number): "“docsync conflicts … restore \(number)”"
    case .exclude(let name): "--exclude \(name)"
    case .identify(let table): "--identity \(table)"
    case .identifyByPrimaryKey(let table): "--identity \(table)=primaryKey"
    }
  }
}
