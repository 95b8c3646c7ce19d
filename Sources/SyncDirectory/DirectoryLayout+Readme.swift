extension DirectoryLayout {
  /// The content of README.txt, the same bytes on every client of this version. No client changes a
  /// README.txt with other content.
  package static let readmeText = """
    This folder is shared by DocumentSync.

    Programs on several devices keep a database the same through the files in
    here. Please do not change, rename, move or delete them: every file is
    written once and read by all devices, and what is missing here may be
    missing everywhere. No text editor can show them, not even those that end
    in ".json".

    Names that DocumentSync does not know are ignored. Copies that a cloud
    service made, such as "... (1)" or "... conflicted copy ...", may be
    deleted. To see which documents are here:

        docsync documents --directory THIS_FOLDER

    The databases themselves are on the devices. Once none of them
    synchronizes through this folder any more, it may be deleted as a whole.

    """
}
