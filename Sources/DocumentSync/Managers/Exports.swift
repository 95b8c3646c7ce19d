// An app gets what it needs of the other modules with `import DocumentSync`.
@_exported import SyncDirectory
@_exported import SyncModel
@_exported import SyncStore
