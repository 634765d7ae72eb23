package metrics

// Traffic counts the SSH traffic to hosts. It implements remote.Traffic.
type Traffic struct{}

// Connected counts an authenticated connection.
func (Traffic) Connected() { Connections.Inc() }

// Opened counts a session in a connection.
func (Traffic) Opened() { Sessions.Inc() }

// Sent counts bytes on the wire.
func (Traffic) Sent(bytes int) { BytesSent.Add(float64(bytes)) }
