// Command gitea is Gitea, linked without C. It registers a SQLite driver in Go under the name that
// Gitea expects.
//
//	gitea COMMAND [FLAGS]
package main

import (
	"database/sql"
	"os"

	"code.gitea.io/gitea/cmd"
	"code.gitea.io/gitea/modules/log"
	_ "code.gitea.io/gitea/modules/markup/markdown" // comments are rendered when they are written
	"code.gitea.io/gitea/modules/setting"
	"github.com/urfave/cli/v3"
	"modernc.org/sqlite"
)

func main() {
	sql.Register("sqlite3", &sqlite.Driver{})
	setting.EnableSQLite3 = true
	setting.SupportedDatabaseTypes = append(setting.SupportedDatabaseTypes, "sqlite3")
	cli.OsExiter = func(code int) {
		log.GetManager().Close()
		os.Exit(code)
	}
	err := cmd.RunMainApp(cmd.NewMainApp(cmd.AppVersion{Version: setting.AppVer}), os.Args...)
	log.GetManager().Close()
	if err != nil {
		os.Exit(1)
	}
}
