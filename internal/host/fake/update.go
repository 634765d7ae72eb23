package fake

// InstallUpdate has the machine run another revision of its Windows build from the next boot on, as Windows Update does.
// A lower revision uninstalls updates.
func (m *Machine) InstallUpdate(revision int) {
	m.lock()
	defer m.unlock()
	m.revision = revision
}
