package metric

// Traffic counts what goes to hosts over SSH. It implements remote.Traffic.
type Traffic struct{}

// Connected counts a connection that is logged in.
func (Traffic) Connected() { Connections.Inc() }

// Opened counts a session in a connection.
func (Traffic) Opened() { Sessions.Inc() }

// Sent counts bytes as they are on the wire.
func (Traffic) Sent(bytes int) { BytesSent.Add(float64(bytes)) }
