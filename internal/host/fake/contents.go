package fake

import (
	"crypto/sha256"
	"runtime"
	"sync"
	"weak"
)

// ContentStore deduplicates file contents of all machines that share the store. Contents without a file are freed.
type ContentStore struct {
	mu       sync.Mutex
	contents map[digest]weak.Pointer[content]
}

type digest [sha256.Size]byte

// content is the immutable content of any number of files.
type content struct {
	data []byte
	sum  digest
}

// NewContentStore returns an empty store.
func NewContentStore() *ContentStore {
	return &ContentStore{contents: map[digest]weak.Pointer[content]{}}
}

// internContent returns the unique content with this data. The store takes ownership of data.
func (s *ContentStore) internContent(data []byte) *content {
	sum := digest(sha256.Sum256(data))
	s.mu.Lock()
	defer s.mu.Unlock()
	if known := s.contents[sum].Value(); known != nil {
		return known
	}
	made := &content{data: data, sum: sum}
	s.contents[sum] = weak.Make(made)
	runtime.AddCleanup(made, s.forgetContent, sum)
	return made
}

func (s *ContentStore) forgetContent(sum digest) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.contents[sum].Value() == nil {
		delete(s.contents, sum)
	}
}
