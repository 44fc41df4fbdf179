import { runCasesOnMysql } from '../stores/mysql/conformance.js'

runCasesOnMysql('mariadb', 'MariaDB through mariadb', { part: 2, of: 13 })
