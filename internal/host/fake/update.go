package fake

// InstallUpdate sets the revision of the Windows build from the next boot on, as Windows Update does. A lower
// revision uninstalls updates.
func (m *Machine) InstallUpdate(revision int) {
	m.lock()
	defer m.unlock()
	m.revision = revision
}
