package nodespec

// Secret is a text that any format verb prints as redacted. Only the JSON form, which is sent to the host, contains
// the text.
type Secret string

const redacted = "[redacted]"

// String hides the text.
func (Secret) String() string { return redacted }

// GoString hides the text from %#v.
func (Secret) GoString() string { return redacted }

// Bytes returns the content of the file.
func (f File) Bytes() []byte {
	if f.Secret != "" {
		return []byte(string(f.Secret))
	}
	return []byte(f.Content)
}
