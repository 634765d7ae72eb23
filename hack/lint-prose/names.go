package main

import (
	"fmt"
	"go/ast"
	"go/token"
	"maps"
	"path"
	"regexp"
	"slices"
	"strings"
	"unicode"
)

type set map[string]bool

// nameIndex contains the names that comments may contain.
type nameIndex struct {
	local   map[string]set // the identifiers by file and by directory
	known   set            // exported identifiers, Go files, and words of strings, of texts and of code in Markdown
	owners  map[string]set // directories by the packages and exported types that they declare
	imports map[string]set // directories by the packages of other modules that they import
	allowed set            // the words of namesFile
	needed  set            // the allowed words that are not known
}

// module is the path of the module, and the beginning of those of its other modules.
const module = "github.com/windows-machine-config/wmco"

// The parts of texts.
var (
	wordPattern = regexp.MustCompile(`\w+`)
	codePattern = regexp.MustCompile("(?s)```.*?```|`[^`]*`")
	// notNames matches quotations of several words, code, directives, paths, URLs, and words with hyphens.
	notNames = regexp.MustCompile("`[^`]*\\s[^`]*`|\"[^\"]*\\s[^\"]*\"|(?m:^[+\t].*)|\\S*[/\\\\@=<>-]\\S*?([.,;:)]*)(?:\\s|$)")
	// namePattern matches a word with its qualifiers, and nameShape a word that is in no dictionary.
	namePattern = regexp.MustCompile(`[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*`)
	nameShape   = regexp.MustCompile(`[a-z0-9][A-Z]|[A-Z]{2}[a-z]{2}|\w_\w`)
	qualified   = regexp.MustCompile(`\.(?:[A-Z]|go$)`)
	// capitalized matches a capitalized word within a sentence, and subject the subject of a sentence about a name.
	capitalized = regexp.MustCompile(`[a-z0-9,)'] ([A-Z][a-z]{2,})\b`)
	subject     = regexp.MustCompile(`(?:(?:^|[a-z)"][.;:] |, and )([A-Z][a-z]+)|[a-z)"]\. ([a-z]\w+)) (?:is|was|has|holds|contains|means|returns|reports|lists|maps|describes)\b`)
	pronoun     = regexp.MustCompile(`^(?:Each|Empty|It|Nil|None|Nothing|The|There|These|This|Zero)$`)
	firstWords  = regexp.MustCompile(`^([A-Za-z_]\w*)(?: (\w*)|[,']|$)`)
	testName    = regexp.MustCompile(`^(?:Test|Fuzz|Benchmark|Example)`)
)

func (s set) addWords(text string) {
	for _, word := range wordPattern.FindAllString(text, -1) {
		s[word] = true
	}
}

func newNameIndex(all sources, allowed string) *nameIndex {
	n := &nameIndex{local: map[string]set{}, known: set{}, owners: map[string]set{}, imports: map[string]set{}, allowed: set{}, needed: set{}}
	for line := range strings.Lines(allowed) {
		if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "#") {
			n.allowed[line] = true
		}
	}
	for name, text := range all.texts {
		if path.Ext(name) == ".md" {
			text = strings.Join(codePattern.FindAllString(text, -1), " ")
		}
		n.known.addWords(text)
	}
	for name, file := range all.code {
		n.addFile(name, file)
	}
	return n
}

func (n *nameIndex) addFile(name string, file *ast.File) {
	directory, local := path.Dir(name), set{path.Base(path.Dir(name)): true}
	n.known[path.Base(name)] = true
	add := func(to map[string]set, name string) {
		if to[name] == nil {
			to[name] = set{}
		}
		to[name][directory] = true
	}
	add(n.owners, strings.TrimSuffix(file.Name.Name, "_test"))
	ast.Inspect(file, func(node ast.Node) bool {
		switch x := node.(type) {
		case *ast.Ident:
			local[x.Name] = true
			if x.IsExported() {
				n.known[x.Name] = true
			}
		case *ast.ImportSpec:
			if imported := strings.Trim(x.Path.Value, `"`); !strings.HasPrefix(imported, module) {
				add(n.imports, path.Base(imported))
			}
		case *ast.TypeSpec:
			if x.Name.IsExported() {
				add(n.owners, x.Name.Name)
			}
		case *ast.Field:
			if x.Tag != nil {
				local.addWords(x.Tag.Value)
			}
		case *ast.BasicLit:
			if x.Kind == token.STRING {
				n.known.addWords(x.Value)
			}
		}
		return true
	})
	n.local[name] = local
	if n.local[directory] == nil {
		n.local[directory] = set{}
	}
	maps.Copy(n.local[directory], local)
}

// isName reports whether a word is a name. A name that is qualified by a package or a type of the tree must be in a
// directory that declares the package or type. The contents of other packages are unknown.
func (n *nameIndex) isName(directory, name string) bool {
	if strings.HasSuffix(name, ".go") {
		return n.isWord(directory, name)
	}
	owner := ""
	for _, part := range strings.Split(name, ".") {
		isOwner := n.owners[owner] != nil
		switch {
		case n.isMember(owner, part):
		case n.imports[owner][directory], n.imports[owner] != nil && !isOwner:
			return true
		case isOwner && ast.IsExported(part):
			return n.isAllowed(name)
		case nameShape.MatchString(part) && !n.isWord(directory, part):
			return false
		}
		owner = part
	}
	return true
}

func (n *nameIndex) isMember(owner, name string) bool {
	for directory := range n.owners[owner] {
		if n.local[directory][name] {
			return true
		}
	}
	return false
}

// isWord reports whether a word or its singular is a name without a qualifier.
func (n *nameIndex) isWord(directory, word string) bool {
	singular := strings.TrimSuffix(word, "s")
	return n.local[directory][word] || n.local[directory][singular] || n.known[word] || n.known[singular] || n.isAllowed(word)
}

// isAllowed reports whether a word that is not known is allowed.
func (n *nameIndex) isAllowed(word string) bool {
	n.needed[word] = true
	return n.allowed[word]
}

// checkNames returns the words in comments that look like names and are none, the doc comments that begin with another
// name than the declared name, and the allowed words that are not needed.
func checkNames(all sources, allowed string) []string {
	n, faults := newNameIndex(all, allowed), set{}
	for name, file := range all.code {
		if ast.IsGenerated(file) {
			continue
		}
		report := func(comment *ast.CommentGroup, word, fault string) {
			faults[fmt.Sprintf("%s:%d: %q in the comment is %s", name, all.positions.Position(comment.Pos()).Line, word, fault)] = true
		}
		for _, comment := range file.Comments {
			for _, word := range n.unknownNames(name, comment.Text()) {
				report(comment, word, "no name in this tree, and not in "+namesFile)
			}
		}
		ast.Inspect(file, func(node ast.Node) bool {
			if comment, declared := documentation(node); comment != nil && len(declared) > 0 {
				if word := n.otherName(name, comment.Text(), declared); word != "" {
					report(comment, word, "not the name of the declaration")
				}
			}
			return true
		})
	}
	for word := range n.allowed {
		if !n.needed[word] {
			faults[fmt.Sprintf("%s: %q is not needed", namesFile, word)] = true
		}
	}
	return slices.Sorted(maps.Keys(faults))
}

// unknownNames returns the words of a comment that must be names and are none. The subject of a sentence about a name
// is a name of the package, or a parameter or variable of the file.
func (n *nameIndex) unknownNames(file, text string) []string {
	directory := path.Dir(file)
	text = strings.Join(strings.Fields(notNames.ReplaceAllString(text, " q$1 ")), " ")
	var unknown []string
	for _, name := range namePattern.FindAllString(text, -1) {
		if (nameShape.MatchString(name) || qualified.MatchString(name)) && !n.isName(directory, name) {
			unknown = append(unknown, name)
		}
	}
	for _, match := range capitalized.FindAllStringSubmatch(text, -1) {
		if !n.isWord(directory, match[1]) {
			unknown = append(unknown, match[1])
		}
	}
	for _, match := range subject.FindAllStringSubmatch(text, -1) {
		word := match[1] + match[2]
		if !pronoun.MatchString(word) && !n.local[directory][word] && !n.local[file][strings.ToLower(word[:1])+word[1:]] && !n.isAllowed(word) {
			unknown = append(unknown, word)
		}
	}
	return unknown
}

// documentation returns the doc comment of a declaration and the declared names.
func documentation(node ast.Node) (*ast.CommentGroup, []*ast.Ident) {
	switch d := node.(type) {
	case *ast.FuncDecl:
		return d.Doc, []*ast.Ident{d.Name}
	case *ast.TypeSpec:
		return d.Doc, []*ast.Ident{d.Name}
	case *ast.ValueSpec:
		return d.Doc, d.Names
	case *ast.Field:
		return d.Doc, d.Names
	case *ast.GenDecl:
		var declared []*ast.Ident
		for _, spec := range d.Specs {
			_, names := documentation(spec)
			declared = append(declared, names...)
		}
		return d.Doc, declared
	}
	return nil, nil
}

// otherName returns the first word of a doc comment if it is a name that is not declared, or "". A sentence begins
// with an upper-case letter, so a first word in lower case is a name.
func (n *nameIndex) otherName(file, text string, declared []*ast.Ident) string {
	match := firstWords.FindStringSubmatch(text)
	if match == nil || slices.ContainsFunc(declared, func(id *ast.Ident) bool { return id.Name == match[1] }) {
		return ""
	}
	word, name, isOther := match[1], declared[0].Name, false
	switch {
	case strings.EqualFold(word, name):
		isOther = !ast.IsExported(name) // exported fields may be named as in JSON
	case unicode.IsLower(rune(word[0])):
		isOther = !n.isAllowed(word)
	case len(declared) == 1 && !testName.MatchString(name):
		isOther = n.local[file][word] && strings.HasSuffix(match[2], "s")
	}
	if isOther {
		return word
	}
	return ""
}
