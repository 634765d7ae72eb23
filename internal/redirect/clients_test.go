package redirect

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// unsafeNames lists functions and variables that create clients that follow redirects, by the import path of
// the package. Each use is an error.
var unsafeNames = map[string][]string{
	"net/http":                   {"DefaultClient", "Get", "Head", "Post", "PostForm"},
	"k8s.io/client-go/transport": {"New"}, // without a rest.Config, and thus without refusing redirects
}

// configSources lists the functions and methods that create a client configuration for the API server.
var configSources = []string{
	"ToRESTConfig", "ClientConfig", "GetConfig", "GetConfigOrDie", "GetConfigWithContext", "InClusterConfig", "AnonymousConfig",
	"BuildConfigFromFlags", "BuildConfigFromKubeconfigGetter", "RESTConfigFromKubeConfig",
}

// findFollowers returns the positions in a Go file that create a client that follows redirects: an http.Client without
// CheckRedirect, an unsafe name, or a configuration of client-go in a function that does not call Refuse.
func findFollowers(name string, source any) ([]string, error) {
	set := token.NewFileSet()
	file, err := parser.ParseFile(set, name, source, parser.SkipObjectResolution)
	if err != nil {
		return nil, err
	}
	f := finder{set: set, imports: map[string]string{}, allowed: map[ast.Node]bool{}}
	for _, one := range file.Imports {
		path, err := strconv.Unquote(one.Path.Value)
		if err != nil {
			return nil, err
		}
		local := path[strings.LastIndexByte(path, '/')+1:]
		if one.Name != nil {
			local = one.Name.Name
		}
		f.imports[local] = path
	}
	for _, declaration := range file.Decls {
		f.refuses = f.hasRefuseCall(declaration)
		ast.Inspect(declaration, f.inspectNode)
	}
	return f.found, nil
}

type finder struct {
	set     *token.FileSet
	imports map[string]string
	// refuses reports whether the current declaration calls Refuse.
	refuses bool
	// allowed holds uses of http.Client that create no client that follows redirects.
	allowed map[ast.Node]bool
	found   []string
}

func (f *finder) reportAt(at ast.Node, format string, arguments ...any) {
	f.found = append(f.found, fmt.Sprintf("%s: %s", f.set.Position(at.Pos()), fmt.Sprintf(format, arguments...)))
}

// qualifiedName returns the import path and the name of a selector such as http.Client.
func (f *finder) qualifiedName(node ast.Node) (path, name string) {
	selector, ok := node.(*ast.SelectorExpr)
	if !ok {
		return "", ""
	}
	if local, ok := selector.X.(*ast.Ident); ok {
		return f.imports[local.Name], selector.Sel.Name
	}
	return "", selector.Sel.Name
}

func (f *finder) isSelector(node ast.Node, path, name string) bool {
	p, n := f.qualifiedName(node)
	return p == path && n == name
}

func (f *finder) hasRefuseCall(node ast.Node) (calls bool) {
	ast.Inspect(node, func(n ast.Node) bool {
		if call, ok := n.(*ast.CallExpr); ok && f.isSelector(call.Fun, "github.com/windows-machine-config/wmco/internal/redirect", "Refuse") {
			calls = true
		}
		return true
	})
	return calls
}

func (f *finder) inspectNode(node ast.Node) bool {
	switch n := node.(type) {
	case *ast.StarExpr: // the type of an existing client
		f.allowed[n.X] = true
	case *ast.CompositeLit:
		if f.isSelector(n.Type, "net/http", "Client") && slices.ContainsFunc(n.Elts, hasCheckRedirect) {
			f.allowed[n.Type] = true
		}
		if f.isSelector(n.Type, "k8s.io/client-go/rest", "Config") && !f.refuses {
			f.reportAt(n, "rest.Config without redirect.Refuse")
		}
	case *ast.CallExpr:
		path, name := f.qualifiedName(n.Fun)
		ofManager := name == "GetConfig" && path == "" // the manager's method returns its own configuration
		if slices.Contains(configSources, name) && !ofManager && !f.refuses {
			f.reportAt(n, "%s without redirect.Refuse", name)
		}
	case *ast.SelectorExpr:
		path, name := f.qualifiedName(n)
		if path == "net/http" && name == "Client" && !f.allowed[n] {
			f.reportAt(n, "http.Client without CheckRedirect")
		}
		if slices.Contains(unsafeNames[path], name) {
			f.reportAt(n, "%s.%s follows redirects", path, name)
		}
	}
	return true
}

func hasCheckRedirect(element ast.Expr) bool {
	pair, ok := element.(*ast.KeyValueExpr)
	if !ok {
		return false
	}
	key, ok := pair.Key.(*ast.Ident)
	value, isName := pair.Value.(*ast.Ident)
	return ok && key.Name == "CheckRedirect" && (!isName || value.Name != "nil")
}

func TestProduct_NoHTTPClientFollowsRedirects(t *testing.T) {
	files := 0
	for _, root := range []string{"cmd", "api", "internal"} {
		err := filepath.WalkDir(filepath.Join("..", "..", root), func(path string, entry fs.DirEntry, err error) error {
			if err != nil || entry.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
				return err
			}
			files++
			found, err := findFollowers(path, nil)
			for _, use := range found {
				t.Error(use)
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if files < 500 {
		t.Errorf("only %d files were read", files)
	}
}

func TestFindFollowers_DetectsFollowingClient(t *testing.T) {
	const path = "github.com/windows-machine-config/wmco/internal/redirect"
	for name, c := range map[string]struct {
		code string
		want string // empty for code that is allowed
	}{
		"a client without CheckRedirect":       {`func f() { c := &http.Client{Timeout: 1}; _ = c }`, "http.Client without CheckRedirect"},
		"an empty client":                      {`var c http.Client`, "http.Client without CheckRedirect"},
		"a new client":                         {`func f() { _ = new(http.Client) }`, "http.Client without CheckRedirect"},
		"a client in a struct":                 {`type s struct { c http.Client }`, "http.Client without CheckRedirect"},
		"a client whose CheckRedirect is none": {`var c = http.Client{CheckRedirect: nil}`, "http.Client without CheckRedirect"},
		"the default client":                   {`func f() { _, _ = http.DefaultClient.Do(nil) }`, "net/http.DefaultClient follows redirects"},
		"a request without a client":           {`func f() { _, _ = http.Get("u") }`, "net/http.Get follows redirects"},
		"the same under another name":          {`func f() { _, _ = web.Post("u", "", nil) }`, "net/http.Post follows redirects"},
		"a configuration of kubectl's flags":   {`func f() { config, _ := flags.ToRESTConfig(); _ = config }`, "ToRESTConfig without redirect.Refuse"},
		"a configuration of a pod":             {`func f() { _, _ = rest.InClusterConfig() }`, "InClusterConfig without redirect.Refuse"},
		"a configuration in code":              {`func f() { _ = &rest.Config{Host: "h"} }`, "rest.Config without redirect.Refuse"},
		"a configuration of a file or a pod":   {`func f() { _, _ = config.GetConfig() }`, "GetConfig without redirect.Refuse"},
		"the configuration of a manager":       {`func f(m manager) { _ = m.GetConfig() }`, ""},
		"a client that refuses":                {`func f() { _ = http.Client{CheckRedirect: refuse} }`, ""},
		"a client of others":                   {`func f(c *http.Client) { _, _ = c.Get("u") }`, ""},
		"a configuration that refuses":         {`func f() { config, _ := flags.ToRESTConfig(); redirect.Refuse(config) }`, ""},
	} {
		source := "package p\nimport (\n\"net/http\"\nweb \"net/http\"\n\"k8s.io/client-go/rest\"\n\"sigs.k8s.io/controller-runtime/pkg/client/config\"\n\"" + path + "\"\n)\n" + c.code
		found, err := findFollowers("p.go", source)
		if err != nil {
			t.Fatal(err)
		}
		if c.want == "" && len(found) > 0 || c.want != "" && (len(found) != 1 || !strings.HasSuffix(found[0], c.want)) {
			t.Errorf("%s: found %q, want %q", name, found, c.want)
		}
	}
}
